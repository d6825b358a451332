// A parser by recursive descent that throws at the first mistake, from any depth.
#include "json.h"

namespace {

class Parser {
public:
    explicit Parser(const std::string &t) : text(t) {}

    Value document()
    {
        Value value = any(0);
        blanks();
        if (place != text.size())
            fail("text after the document");
        return value;
    }

private:
    [[noreturn]] void fail(const char *what) const { throw SyntaxError(what, place); }

    char peek() const { return place < text.size() ? text[place] : '\0'; }

    void blanks()
    {
        while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r')
            place++;
    }

    void expect(char c, const char *what)
    {
        blanks();
        if (peek() != c)
            fail(what);
        place++;
    }

    void word(const char *rest)
    {
        for (; *rest; rest++, place++)
            if (peek() != *rest)
                fail("an unknown word");
    }

    bool more(char end)
    {
        blanks();
        if (peek() == end) {
            place++;
            return false;
        }
        expect(',', "no comma between elements");
        return true;
    }

    Value any(int depth)
    {
        if (depth > 100)
            fail("too deep");
        blanks();
        switch (peek()) {
        case '{':
            return { object(depth) };
        case '[':
            return { array(depth) };
        case '"':
            return { string() };
        case 't':
            word("true");
            return { true };
        case 'f':
            word("false");
            return { false };
        case 'n':
            word("null");
            return { nullptr };
        default:
            return number();
        }
    }

    Object object(int depth)
    {
        Object members;
        place++;
        blanks();
        if (peek() == '}') {
            place++;
            return members;
        }
        do {
            blanks();
            if (peek() != '"')
                fail("a name is no string");
            std::string key = string();
            expect(':', "no colon after a name");
            if (!members.emplace(std::move(key), any(depth + 1)).second)
                fail("a name twice");
        } while (more('}'));
        return members;
    }

    Array array(int depth)
    {
        Array elements;
        place++;
        blanks();
        if (peek() == ']') {
            place++;
            return elements;
        }
        do
            elements.push_back(any(depth + 1));
        while (more(']'));
        return elements;
    }

    std::string string()
    {
        std::string out;
        for (place++; peek() != '"'; place++) {
            char c = peek();
            if (uint8_t(c) < 32)
                fail("a control character in a string");
            if (c == '\\') {
                place++;
                switch (peek()) {
                case 'n':
                    c = '\n';
                    break;
                case 't':
                    c = '\t';
                    break;
                case '"':
                case '\\':
                case '/':
                    c = peek();
                    break;
                default:
                    fail("an unknown escape");
                }
            }
            out += c;
        }
        place++;
        return out;
    }

    Value number()
    {
        bool negative = peek() == '-';
        place += negative;
        if (peek() < '0' || peek() > '9')
            fail("no value");
        int64_t whole = 0;
        for (; peek() >= '0' && peek() <= '9'; place++)
            if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, peek() - '0', &whole))
                throw std::overflow_error("a number is too big");
        if (peek() != '.')
            return { negative ? -whole : whole };
        double digits = 0, power = 1;
        for (place++; peek() >= '0' && peek() <= '9'; place++, power *= 10)
            digits = digits * 10 + (peek() - '0');
        double value = double(whole) + digits / power;
        return { negative ? -value : value };
    }

    const std::string &text;
    size_t place = 0;
};

} // namespace

Value parse(const std::string &text)
{
    return Parser(text).document();
}
