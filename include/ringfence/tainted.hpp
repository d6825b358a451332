// ringfence/tainted.hpp - a library in a domain, for C++17: what comes from it is a tainted<T>, which cannot be used before
// it is checked or copied. The names are RLBox's.
//
//     ringfence::sandbox box("libcodec.rf");
//     auto in = box.copy(data, size);                                            // memory in the domain, freed with `in`
//     ringfence::tainted<header *> h = sandbox_invoke(box, codec_open, in, size);
//     unsigned width = h->width.copy_and_verify([](unsigned w) { return w <= 4096 ? w : 0; });
//
// Fields by name need NAME_fenced.hpp, which `ringfence bind --lang c++` writes. What fails gives 0 or NULL, and rf_error tells, as
// in C. Threads: as the library's own; a sandbox outlives what was made of it.
#ifndef RINGFENCE_TAINTED_HPP
#define RINGFENCE_TAINTED_HPP

#include <ringfence/by_value.hpp>

#if __cplusplus < 201703L
#error "ringfence/tainted.hpp needs C++17 or newer"
#endif

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace ringfence {

class sandbox;
template <typename T> class tainted;
template <typename T> class tainted_volatile;
template <typename T> class sandbox_callback;
template <typename T> class sandbox_memory;

namespace detail {

template <typename> inline constexpr bool never = false;

// A place in a domain.
struct place {
    rf_domain *domain;
    std::uintptr_t address;
};

template <typename T> T load(const place &at) {
    static_assert(std::is_trivially_copyable_v<T>, "only plain data is copied out of a domain");
    T value{};
    if (rf_memory_read(at.domain, reinterpret_cast<const void *>(at.address), &value, sizeof value) != RF_OK)
        return T{};
    return value;
}

template <typename T> std::unique_ptr<T[]> load_range(const place &at, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "only plain data is copied out of a domain");
    // No larger than a window: the count may be a tainted value that was not checked well.
    if (!at.address || count > (std::size_t{1} << 32) / sizeof(T) || !rf_memory_contains(at.domain, reinterpret_cast<const void *>(at.address), count * sizeof(T)))
        return nullptr;
    std::unique_ptr<T[]> copy(new T[count ? count : 1]);
    if (rf_memory_read(at.domain, reinterpret_cast<const void *>(at.address), copy.get(), count * sizeof(T)) != RF_OK)
        return nullptr;
    return copy;
}

template <typename T> tainted<T> taint(rf_domain *domain, T value);

// Which domain a struct comes from, whose pointers lead there.
template <bool Struct> struct origin {
    explicit origin(rf_domain *) {}
    rf_domain *domain() const { return nullptr; }
};
template <> struct origin<true> {
    explicit origin(rf_domain *domain) : domain_(domain) {}
    rf_domain *domain() const { return domain_; }

  private:
    rf_domain *domain_;
};

} // namespace detail

// The fields of S in a domain: `ringfence bind --lang c++` writes one for each struct of a header.
template <typename S> class tainted_struct {
    static_assert(detail::never<S>, "the fields of this struct are not known: include NAME_fenced.hpp of `ringfence bind --lang c++`");
};

// A value that code in a domain has chosen.
template <typename T> class tainted : detail::origin<detail::is_struct<T>> {
    using origin = detail::origin<detail::is_struct<T>>;
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T> || (detail::is_struct<T> && std::is_trivially_copyable_v<T>),
                  "tainted<T> is for numbers, enumerations, pointers and plain structs");

  public:
    tainted() : origin(nullptr) {}
    explicit tainted(T value, rf_domain *domain = nullptr) : origin(domain), value_(value) {}

    // What `check` makes of the value.
    template <typename F> auto copy_and_verify(F &&check) const { return std::forward<F>(check)(value_); }
    // A field of a struct, s.field(&S::x).
    template <typename F, typename S> tainted<F> field(F S::*member) const { return detail::taint<F>(origin::domain(), value_.*member); }
    // The value as it is: whoever writes this has a reason why any will do.
    T UNSAFE_unverified() const { return value_; }

    template <typename X> operator X() const {
        static_assert(detail::never<X>, "a tainted value may be anything: check it with copy_and_verify(check), or say that any will do with UNSAFE_unverified()");
        return X{};
    }

  private:
    T value_{};
};

#define RF_TAINTED_OPERATOR(op)                                                                                        \
    template <typename A, typename B> auto operator op(const tainted<A> &a, const tainted<B> &b) {                      \
        return tainted(a.UNSAFE_unverified() op b.UNSAFE_unverified());                                                \
    }                                                                                                                   \
    template <typename A, typename B, std::enable_if_t<std::is_arithmetic_v<B> || std::is_enum_v<B>, int> = 0>          \
    auto operator op(const tainted<A> &a, B b) {                                                                        \
        return tainted(a.UNSAFE_unverified() op b);                                                                    \
    }                                                                                                                   \
    template <typename A, typename B, std::enable_if_t<std::is_arithmetic_v<A> || std::is_enum_v<A>, int> = 0>          \
    auto operator op(A a, const tainted<B> &b) {                                                                        \
        return tainted(a op b.UNSAFE_unverified());                                                                    \
    }                                                                                                                   \
    template <typename A, typename B> auto operator op(const tainted_volatile<A> &a, const B &b) {                      \
        return a.get() op b;                                                                                            \
    }
// No division and no shift: by a value that is not checked they end the program. Nor what overflows: check first.
RF_TAINTED_OPERATOR(==)
RF_TAINTED_OPERATOR(!=)
RF_TAINTED_OPERATOR(<)
RF_TAINTED_OPERATOR(<=)
RF_TAINTED_OPERATOR(>)
RF_TAINTED_OPERATOR(>=)
RF_TAINTED_OPERATOR(&)
RF_TAINTED_OPERATOR(|)
RF_TAINTED_OPERATOR(^)
#undef RF_TAINTED_OPERATOR

// A pointer that code in a domain has chosen. It is followed by copies, which cannot leave the domain.
template <typename T> class tainted<T *> {
    using plain = std::remove_cv_t<T>;
    using element = std::conditional_t<std::is_void_v<plain> || std::is_function_v<plain>, char, plain>;

  public:
    tainted() = default;
    tainted(std::nullptr_t) {}
    explicit tainted(const detail::place &at) : at_(at) {}
    // What points to T also points to const T, and to void.
    template <typename U, std::enable_if_t<std::is_convertible_v<U *, T *>, int> = 0> tainted(const tainted<U *> &other) : at_(other.place()) {}

    // A check gets the data, never the pointer: a copy of one element (none for NULL and what lies outside), of several, of a text.
    template <typename F> auto copy_and_verify(F &&check) const { return std::forward<F>(check)(one()); }
    template <typename F> auto copy_and_verify_range(F &&check, std::size_t count) const {
        return std::forward<F>(check)(detail::load_range<element>(at_, count));
    }
    template <typename F> auto copy_and_verify_string(F &&check) const {
        static_assert(sizeof(element) == 1, "a string has elements of one byte");
        return std::forward<F>(check)(string());
    }
    template <typename F> auto copy_and_verify_address(F &&check) const { return std::forward<F>(check)(at_.address); }
    // Not to be followed: other threads of the domain change what is there, and it may lie anywhere.
    T *UNSAFE_unverified() const { return reinterpret_cast<T *>(at_.address); }

    bool operator==(std::nullptr_t) const { return at_.address == 0; }
    bool operator!=(std::nullptr_t) const { return at_.address != 0; }
    tainted operator+(std::size_t n) const { return tainted(detail::place{at_.domain, at_.address + n * sizeof(element)}); }
    tainted_volatile<plain> operator[](std::size_t n) const { return tainted_volatile<plain>((*this + n).at_, 0); }
    tainted_volatile<plain> operator*() const { return (*this)[0]; }

    // p->field
    class arrow {
      public:
        explicit arrow(const detail::place &at) : fields(at) {}
        tainted_struct<plain> *operator->() { return &fields; }

      private:
        tainted_struct<plain> fields;
    };
    arrow operator->() const { return arrow(at_); }

    const detail::place &place() const { return at_; }

    template <typename X> operator X() const {
        static_assert(detail::never<X>, "a tainted pointer is not followed: copy what it points to with copy_and_verify, copy_and_verify_range or "
                                        "copy_and_verify_string, or use its fields");
        return X{};
    }

  private:
    std::unique_ptr<element> one() const {
        auto copy = detail::load_range<element>(at_, 1);
        return copy ? std::unique_ptr<element>(new element(copy[0])) : nullptr;
    }
    std::unique_ptr<element[]> string() const {
        for (std::size_t room = 256; room <= std::size_t{1} << 32; room *= 4) {
            std::unique_ptr<element[]> copy(new element[room]);
            rf_status status = rf_memory_read_string(at_.domain, reinterpret_cast<const void *>(at_.address), reinterpret_cast<char *>(copy.get()), room, nullptr);
            if (status == RF_OK)
                return copy;
            if (status != RF_ERROR_TOO_LONG)
                break;
        }
        return nullptr;
    }

    detail::place at_{nullptr, 0};
};

// A cast between tainted values.
template <typename T, typename U> tainted<T> sandbox_static_cast(const tainted<U> &from) {
    if constexpr (std::is_pointer_v<T>)
        return tainted<T>(from.place());
    else
        return tainted<T>(static_cast<T>(from.UNSAFE_unverified()));
}

// A variable in a domain: each use reads or writes it there. Code in the domain may change it in between: copy it once.
template <typename T> class tainted_volatile {
  public:
    tainted_volatile(const detail::place &at, std::size_t offset) : at_{at.domain, at.address + offset} {}

    operator tainted<T>() const { return get(); }
    template <typename X, std::enable_if_t<!std::is_same_v<X, tainted<T>>, int> = 0> operator X() const {
        static_assert(detail::never<X>, "a tainted value may be anything: check it with copy_and_verify(check), or say that any will do with UNSAFE_unverified()");
        return X{};
    }
    template <typename F> auto copy_and_verify(F &&check) const {
        if constexpr (std::is_class_v<T> || std::is_union_v<T>)
            return std::forward<F>(check)(detail::load<T>(at_));
        else
            return get().copy_and_verify(std::forward<F>(check));
    }
    template <typename F> auto copy_and_verify_range(F &&check, std::size_t count) const { return get().copy_and_verify_range(std::forward<F>(check), count); }
    template <typename F> auto copy_and_verify_string(F &&check) const { return get().copy_and_verify_string(std::forward<F>(check)); }
    auto UNSAFE_unverified() const { return get().UNSAFE_unverified(); }

    tainted<T> get() const {
        return detail::taint<T>(at_.domain, detail::load<T>(at_));
    }
    template <typename U> tainted_volatile &operator=(const tainted<U> &value) {
        static_assert(std::is_convertible_v<U, T>, "a tainted value of another type: sandbox_static_cast");
        return store(value.UNSAFE_unverified());
    }
    template <typename U, std::enable_if_t<std::is_arithmetic_v<U> || std::is_enum_v<U>, int> = 0> tainted_volatile &operator=(U value) {
        return store(static_cast<T>(value));
    }
    template <typename U> tainted_volatile &operator=(U *) {
        static_assert(detail::never<U>, "a host pointer means nothing in the domain: store one to memory there (malloc_in_sandbox, copy)");
        return *this;
    }
    tainted<T *> operator&() const { return tainted<T *>(at_); }
    // Of a struct in a struct, s.inner->field.
    auto operator->() const {
        if constexpr (std::is_pointer_v<T>)
            return get().operator->();
        else
            return tainted<T *>(at_).operator->();
    }

  private:
    tainted_volatile &store(T value) {
        (void)rf_memory_write(at_.domain, reinterpret_cast<void *>(at_.address), &value, sizeof value);
        return *this;
    }
    detail::place at_;
};

template <typename T, std::size_t N> class tainted_volatile<T[N]> {
  public:
    tainted_volatile(const detail::place &at, std::size_t offset) : at_{at.domain, at.address + offset} {}
    // Beyond the end there is nothing: the first element.
    tainted_volatile<T> operator[](std::size_t n) const { return tainted_volatile<T>(at_, n < N ? n * sizeof(T) : 0); }
    template <typename F> auto copy_and_verify(F &&check) const { return std::forward<F>(check)(detail::load<std::array<T, N>>(at_)); }

  private:
    detail::place at_;
};

// Memory in a domain that is freed with this.
template <typename T> class sandbox_memory {
  public:
    sandbox_memory() = default;
    sandbox_memory(rf_domain *domain, T *address, std::size_t count) : at_{domain, reinterpret_cast<std::uintptr_t>(address)}, count_(count) {}
    sandbox_memory(sandbox_memory &&other) noexcept : at_(std::exchange(other.at_, detail::place{nullptr, 0})), count_(other.count_) {}
    sandbox_memory &operator=(sandbox_memory &&other) noexcept {
        std::swap(at_, other.at_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~sandbox_memory() {
        if (at_.address)
            (void)rf_memory_free(at_.domain, reinterpret_cast<void *>(at_.address));
    }
    explicit operator bool() const { return at_.address != 0; }
    tainted<T *> get() const { return tainted<T *>(at_); }
    tainted_volatile<T> operator[](std::size_t n) const { return get()[n]; }
    auto operator->() const { return get().operator->(); }
    std::size_t size() const { return count_; }

  private:
    detail::place at_{nullptr, 0};
    std::size_t count_ = 0;
};

// A host function that a domain may call for as long as this lives. Calls after that fail, and end the domain's call.
template <typename F> class sandbox_callback;
template <typename R, typename... A> class sandbox_callback<R (*)(A...)> {
  public:
    sandbox_callback() = default;
    sandbox_callback(std::function<void(rf_caller *)> *slot, const detail::place &at) : slot_(slot), at_(at) {}
    sandbox_callback(sandbox_callback &&other) noexcept : slot_(std::exchange(other.slot_, nullptr)), at_(other.at_) {}
    sandbox_callback &operator=(sandbox_callback &&other) noexcept {
        std::swap(slot_, other.slot_);
        std::swap(at_, other.at_);
        return *this;
    }
    ~sandbox_callback() { unregister(); }
    void unregister() {
        if (slot_)
            *std::exchange(slot_, nullptr) = nullptr;
    }
    explicit operator bool() const { return slot_ != nullptr; }
    const detail::place &place() const { return at_; }

  private:
    std::function<void(rf_caller *)> *slot_ = nullptr;
    detail::place at_{nullptr, 0};
};

namespace detail {

// What a parameter of type P gets for an argument.
template <typename P, typename X> struct argument {
    static_assert(!std::is_pointer_v<X> && !std::is_array_v<X>,
                  "a host pointer means nothing in the domain: pass memory there (copy, malloc_in_sandbox) or a sandbox_callback");
    static_assert(std::is_arithmetic_v<X> || std::is_enum_v<X> || (is_struct<X> && std::is_same_v<P, X>), "this does not pass into a domain");
    static P get(X value) { return static_cast<P>(value); }
};
template <typename P, typename T> struct argument<P, tainted<T>> {
    static_assert(std::is_convertible_v<T, P>, "a tainted value of another type: sandbox_static_cast");
    static P get(const tainted<T> &value) { return static_cast<P>(value.UNSAFE_unverified()); }
};
template <typename P, typename T> struct argument<P, tainted_volatile<T>> {
    static P get(const tainted_volatile<T> &value) { return argument<P, tainted<T>>::get(value.get()); }
};
template <typename P, typename T> struct argument<P, sandbox_memory<T>> {
    static P get(const sandbox_memory<T> &value) { return argument<P, tainted<T *>>::get(value.get()); }
};
template <typename P, typename F> struct argument<P, sandbox_callback<F>> {
    static_assert(std::is_same_v<P, F>, "a callback of another type than the function takes");
    static P get(const sandbox_callback<F> &value) { return reinterpret_cast<P>(value.place().address); }
};
template <typename P> struct argument<P, std::nullptr_t> {
    static P get(std::nullptr_t) { return nullptr; }
};

template <typename T> tainted<T> taint(rf_domain *domain, T value) {
    if constexpr (std::is_pointer_v<T>)
        return tainted<T>(place{domain, reinterpret_cast<std::uintptr_t>(value)});
    else if constexpr (is_struct<T>)
        return tainted<T>(value, domain);
    else
        return tainted<T>(value);
}

// The arguments of a host function, in order.
struct arguments {
    rf_domain *domain;
    rf_caller *caller;
    unsigned ints = 0, floats = 0, stacked = 0;

    template <typename T> tainted<T> next() {
        static_assert(!std::is_same_v<T, long double> && !is_struct<T>, "long double and structs do not reach a host function by value: take a pointer");
        if constexpr (std::is_same_v<T, double>)
            return tainted<T>(floats < 8 ? rf_caller_arg_f64(caller, floats++) : word<T>(rf_caller_arg_stack(caller, stacked++)));
        else if constexpr (std::is_same_v<T, float>)
            return tainted<T>(floats < 8 ? rf_caller_arg_f32(caller, floats++) : word<T>(rf_caller_arg_stack(caller, stacked++)));
        else
            return taint<T>(domain, word<T>(ints < 6 ? rf_caller_arg_int(caller, ints++) : rf_caller_arg_stack(caller, stacked++)));
    }
    template <typename T> static T word(std::uint64_t bits) {
        T value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
};

template <typename R> void give_back(rf_caller *caller, R value) {
    static_assert(!std::is_same_v<R, long double> && !is_struct<R>, "a host function returns no long double and no struct: write it through a pointer");
    if constexpr (std::is_same_v<R, double>)
        rf_caller_return_f64(caller, value);
    else if constexpr (std::is_same_v<R, float>)
        rf_caller_return_f32(caller, value);
    else if constexpr (std::is_pointer_v<R>)
        rf_caller_return_int(caller, reinterpret_cast<std::uintptr_t>(value));
    else
        rf_caller_return_int(caller, static_cast<std::uint64_t>(value));
}

// The type that a callback's own result has for the domain.
template <typename R> struct returned {
    using type = R;
    static R get(R value) { return value; }
};
template <typename T> struct returned<tainted<T>> {
    using type = T;
    static T get(const tainted<T> &value) { return value.UNSAFE_unverified(); }
};

} // namespace detail

// A library in a domain of its own.
class sandbox {
  public:
    static constexpr std::size_t most_callbacks = 64;

    // Opens the module; `options` as for rf_domain_create. If it fails, this is false, and rf_error tells why.
    explicit sandbox(const std::string &path, const rf_domain_options *options = nullptr) {
        domain_options own;
        if (options)
            static_cast<rf_domain_options &>(own) = *options;
        std::vector<rf_import> imports(own.imports, own.imports + own.import_count);
        for (std::size_t i = 0; i < most_callbacks; i++) {
            names_[i] = "rf_tainted_" + std::to_string(i);
            imports.push_back({names_[i].c_str(), nullptr, call_back, &slots_[i]});
        }
        own.imports = imports.data(), own.import_count = imports.size(), own.extensible = 1;
        handle_ = rf_dlopen_with(path.c_str(), 0, &own);
        domain_ = handle_ ? rf_dldomain(handle_) : nullptr;
    }
    ~sandbox() {
        if (handle_)
            (void)rf_dlclose(handle_);
    }
    sandbox(const sandbox &) = delete;
    sandbox &operator=(const sandbox &) = delete;

    explicit operator bool() const { return domain_ != nullptr; }
    rf_domain *domain() const { return domain_; }

    // Calls the function `name` of type F; sandbox_invoke writes both.
    template <typename F, typename... X> auto invoke(const char *name, const X &...arguments) {
        return caller<std::remove_pointer_t<F>>::call(*this, name, arguments...);
    }
    // What does so.
    template <typename F> auto invoker(const char *name) {
        return [this, name](const auto &...arguments) { return invoke<F>(name, arguments...); };
    }

    // Memory in the domain, zeroed; NULL if there is none.
    template <typename T> tainted<T *> malloc_in_sandbox(std::size_t count = 1) {
        bool fits = count <= (std::size_t{1} << 32) / sizeof(T);
        return detail::taint<T *>(domain_, fits ? static_cast<T *>(rf_memory_alloc(domain_, count * sizeof(T))) : nullptr);
    }
    template <typename T> void free_in_sandbox(const tainted<T *> &memory) { (void)rf_memory_free(domain_, memory.UNSAFE_unverified()); }
    // The same, freed by its owner.
    template <typename T> sandbox_memory<T> allocate(std::size_t count = 1) {
        return sandbox_memory<T>(domain_, malloc_in_sandbox<T>(count).UNSAFE_unverified(), count);
    }
    // A copy of the host's data, and of a text.
    template <typename T> sandbox_memory<std::remove_const_t<T>> copy(T *data, std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>, "only plain data is copied into a domain");
        auto memory = allocate<std::remove_const_t<T>>(count);
        if (memory)
            (void)rf_memory_write(domain_, memory.get().UNSAFE_unverified(), data, count * sizeof(T));
        return memory;
    }
    sandbox_memory<char> copy(const std::string &text) { return copy(text.c_str(), text.size() + 1); }

    // Lets the domain call `function(sandbox &, tainted<A>...)`; false if it has most_callbacks already.
    template <typename R, typename... A> auto register_callback(R (*function)(sandbox &, tainted<A>...)) {
        using result = typename detail::returned<R>::type;
        auto [slot, address] = lend([this, function](rf_caller *caller) {
            detail::arguments in{domain_, caller};
            std::tuple<tainted<A>...> list{in.template next<A>()...};
            auto call = [&](auto &...a) { return function(*this, a...); };
            if constexpr (std::is_void_v<R>)
                std::apply(call, list);
            else
                detail::give_back<result>(caller, detail::returned<R>::get(std::apply(call, list)));
        });
        return sandbox_callback<result (*)(A...)>(slot, detail::place{domain_, reinterpret_cast<std::uintptr_t>(address)});
    }
    template <typename F> auto register_callback(F) {
        static_assert(detail::never<F>, "a callback is R f(sandbox &, tainted<A>...): what the domain gives it is tainted, too");
    }

    // The general form: what is called, until the function behind the first is set to nullptr; and the domain's address for it.
    using slot = std::function<void(rf_caller *)>;
    std::pair<slot *, void *> lend(slot function) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (std::size_t i = 0; i < most_callbacks; i++) {
            void *address = slots_[i] ? nullptr : rf_import_address(domain_, names_[i].c_str());
            if (!address)
                continue;
            slots_[i] = std::move(function);
            return {&slots_[i], address};
        }
        return {nullptr, nullptr};
    }

    // The function of type F that is called by this name, nullptr if there is none.
    template <typename F> F *find(const std::string &name) {
        std::lock_guard<std::mutex> lock(mutex_);
        void *&known = functions_[name];
        if (!known)
            known = reinterpret_cast<void *>(dlsym<F>(handle_, name));
        return reinterpret_cast<F *>(known);
    }

  private:
    template <typename F> struct caller {
        static_assert(detail::never<F>, "this is no function that passes a gate");
    };
    template <typename R, typename... A> struct caller<R(A...)> {
        template <typename... X> static auto call(sandbox &box, const char *name, const X &...arguments) {
            static_assert(sizeof...(X) == sizeof...(A), "another number of arguments than the function takes");
            using lowered = detail::lowered<R(A...)>;
            if constexpr (lowered::needed)
                return taint(box, box.find<typename lowered::prototype>(name), [&](auto *function) {
                    return lowered::call(box.domain_, function, detail::argument<A, std::decay_t<X>>::get(arguments)...);
                });
            else
                return taint(box, box.find<R(A...)>(name), [&](auto *function) { return function(detail::argument<A, std::decay_t<X>>::get(arguments)...); });
        }
        // What `call` makes of the function, if there is one.
        template <typename F, typename C> static auto taint(sandbox &box, F *function, C &&call) {
            if constexpr (std::is_void_v<R>) {
                if (function)
                    call(function);
            } else {
                return detail::taint<R>(box.domain_, function ? call(function) : R{});
            }
        }
    };
    template <typename R, typename... A> struct caller<R(A...) noexcept> : caller<R(A...)> {};

    static void call_back(rf_caller *caller, void *context) {
        slot function = *static_cast<slot *>(context); // a copy: it may be taken back by what it calls
        if (function)
            function(caller);
        else
            rf_caller_fail(caller, "a callback that was taken back was called");
    }

    std::mutex mutex_;
    std::array<std::string, most_callbacks> names_;
    std::array<slot, most_callbacks> slots_;
    std::map<std::string, void *> functions_;
    void *handle_ = nullptr;
    rf_domain *domain_ = nullptr;
};

} // namespace ringfence

// A call of `function`, which the library's header declares, in the domain.
#define sandbox_invoke(box, function, ...) ((box).template invoker<decltype(function)>(#function)(__VA_ARGS__))

#endif
