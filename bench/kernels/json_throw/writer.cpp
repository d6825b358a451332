// Values as text.
#include "json.h"

namespace {

struct Writer {
    std::string &out;

    void operator()(std::nullptr_t) const { out += "null"; }
    void operator()(bool b) const { out += b ? "true" : "false"; }
    void operator()(int64_t n) const { out += std::to_string(n); }
    void operator()(double d) const
    {
        // three digits after the point are what this program's numbers have
        int64_t n = int64_t(d < 0 ? d * 1000 - 0.5 : d * 1000 + 0.5), size = n < 0 ? -n : n;
        out += (n < 0 ? "-" : "") + std::to_string(size / 1000) + ".";
        out += std::to_string(size % 1000 + 1000).substr(1);
    }
    void operator()(const std::string &s) const
    {
        out += '"';
        for (char c : s) {
            if (c == '"' || c == '\\')
                out += '\\';
            if (c == '\n')
                out += "\\n";
            else
                out += c;
        }
        out += '"';
    }
    void operator()(const Array &a) const
    {
        const char *before = "[";
        for (const Value &v : a) {
            out += before;
            std::visit(*this, v.is);
            before = ", ";
        }
        out += a.empty() ? "[]" : "]";
    }
    void operator()(const Object &o) const
    {
        const char *before = "{";
        for (const auto &[key, value] : o) {
            out += before;
            (*this)(key);
            out += ": ";
            std::visit(*this, value.is);
            before = ", ";
        }
        out += o.empty() ? "{}" : "}";
    }
};

} // namespace

std::string write(const Value &value)
{
    std::string out;
    std::visit(Writer{ out }, value.is);
    return out;
}
