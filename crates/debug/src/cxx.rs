//! Names of C++ functions as their source has them: scopes, templates and operators, without parameters.
//!
//! What is not known here makes the whole name unknown, and the caller shows it as it is. Recursion ends at a fixed depth; every step is
//! counted, and what is written is cut, for a short name can stand for an endless one.

/// Most bytes that taking a name apart may write; fewer are shown.
pub const WRITTEN: usize = 1024;

const DEPTH: usize = 64;
const STEPS: usize = 4096;

/// `None` if that is no C++ name, or one with something that is not known here.
pub fn demangle(name: &str) -> Option<String> {
    let mut d = Demangler {
        rest: name.strip_prefix("_Z")?,
        seen: Vec::new(),
        arguments: Vec::new(),
        depth: 0,
        steps: 0,
    };
    d.encoding()
}

struct Demangler<'a> {
    rest: &'a str,
    /// What substitutions stand for.
    seen: Vec<String>,
    /// What template parameters stand for.
    arguments: Vec<String>,
    depth: usize,
    steps: usize,
}

impl<'a> Demangler<'a> {
    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.rest.bytes().next()
    }

    /// One level deeper.
    fn inside<T>(&mut self, f: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        self.steps += 1;
        let value = (self.depth <= DEPTH && self.steps <= STEPS)
            .then(|| f(self))
            .flatten();
        self.depth -= 1;
        value
    }

    /// Text that is not longer than what is shown.
    fn short(text: String) -> Option<String> {
        (text.len() <= WRITTEN).then_some(text)
    }

    fn remember(&mut self, text: &str) {
        self.seen.push(text.to_owned());
    }

    /// `<encoding>`: what follows the name are parameters.
    fn encoding(&mut self) -> Option<String> {
        self.inside(|d| {
            for (prefix, what) in [
                ("TV", "vtable for "),
                ("TT", "VTT for "),
                ("TI", "typeinfo for "),
                ("TS", "typeinfo name for "),
            ] {
                if d.eat(prefix) {
                    return Some(format!("{what}{}", d.type_()?));
                }
            }
            if d.eat("GV") {
                return Some(format!("guard variable for {}", d.name()?));
            }
            if d.eat("Th") {
                d.number()?;
                d.eat("_").then_some(())?;
                return Some(format!("non-virtual thunk to {}", d.encoding()?));
            }
            d.name()
        })
    }

    fn name(&mut self) -> Option<String> {
        self.inside(|d| {
            if d.eat("N") {
                return d.nested();
            }
            if d.eat("Z") {
                let outer = d.encoding()?;
                // The parameters of the function around it.
                while !d.eat("E") {
                    d.type_()?;
                }
                if d.eat("s") {
                    d.discriminator();
                    return Self::short(format!("{outer}::string literal"));
                }
                let inner = d.name()?;
                d.discriminator();
                return Self::short(format!("{outer}::{inner}"));
            }
            let standard = d.eat("St");
            let (mut name, substituted) = match d.peek()? {
                b'S' if !standard => (d.substitution()?, true),
                _ => (d.unqualified("")?, false),
            };
            if standard {
                name = format!("std::{name}");
            }
            if d.peek() == Some(b'I') {
                if !substituted {
                    d.remember(&name);
                }
                name += &d.template_arguments()?;
            }
            Self::short(name)
        })
    }

    fn discriminator(&mut self) {
        if self.eat("_") {
            self.eat("_");
            while self.peek().is_some_and(|b| b.is_ascii_digit()) {
                self.rest = &self.rest[1..];
            }
        }
    }

    /// Behind `N`.
    fn nested(&mut self) -> Option<String> {
        while self.eat("r") || self.eat("V") || self.eat("K") {}
        let _ = self.eat("R") || self.eat("O");
        let (mut name, mut last) = (String::new(), String::new());
        loop {
            self.steps += 1;
            if self.steps > STEPS {
                return None;
            }
            match self.peek()? {
                b'E' => {
                    self.rest = &self.rest[1..];
                    // The whole is no substitution of its own.
                    self.seen.pop();
                    return Some(name);
                }
                b'I' => {
                    name += &self.template_arguments()?;
                    self.remember(&name);
                }
                b'S' if name.is_empty() && !self.rest.starts_with("St") => {
                    name = self.substitution()?;
                    last = name.rsplit("::").next().unwrap_or_default().to_owned();
                    continue;
                }
                b'T' if name.is_empty() => {
                    name = self.parameter()?;
                    self.remember(&name);
                }
                _ if name.is_empty() && self.eat("St") => {
                    name = "std".into();
                    continue;
                }
                _ => {
                    let bare = last.split('<').next().unwrap_or_default().to_owned();
                    last = self.unqualified(&bare)?;
                    if !name.is_empty() {
                        name += "::";
                    }
                    name += &last;
                    self.remember(&name);
                }
            }
            if name.len() > WRITTEN {
                return None;
            }
        }
    }

    fn number(&mut self) -> Option<usize> {
        let negative = self.eat("n");
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        let value = digits.parse().ok()?;
        Some(if negative { 0 } else { value })
    }

    /// One part of a name; `class` is the one before, for constructors.
    fn unqualified(&mut self, class: &str) -> Option<String> {
        self.eat("L");
        let mut name = match self.peek()? {
            b'0'..=b'9' => {
                let len = self.number()?;
                let text = self.rest.get(..len)?;
                self.rest = &self.rest[len..];
                if text.starts_with("_GLOBAL__N") {
                    "(anonymous namespace)".to_owned()
                } else {
                    text.to_owned()
                }
            }
            b'C' => {
                self.rest = self.rest.get(2..)?;
                class.to_owned()
            }
            b'D' if matches!(self.rest.as_bytes().get(1), Some(b'0'..=b'5')) => {
                self.rest = &self.rest[2..];
                format!("~{class}")
            }
            b'U' => {
                if self.eat("Ul") {
                    while !self.eat("E") {
                        self.inside(Self::type_)?;
                    }
                    let n = if self.peek() == Some(b'_') {
                        1
                    } else {
                        self.number()? + 2
                    };
                    self.eat("_").then_some(())?;
                    format!("{{lambda#{n}}}")
                } else if self.eat("Ut") {
                    let n = if self.peek() == Some(b'_') {
                        1
                    } else {
                        self.number()? + 2
                    };
                    self.eat("_").then_some(())?;
                    format!("{{unnamed type#{n}}}")
                } else {
                    return None;
                }
            }
            b'a'..=b'z' => self.operator()?,
            _ => return None,
        };
        while self.eat("B") {
            let len = self.number()?;
            let tag = self.rest.get(..len)?;
            self.rest = &self.rest[len..];
            name = Self::short(format!("{name}[abi:{tag}]"))?;
        }
        Self::short(name)
    }

    fn operator(&mut self) -> Option<String> {
        if self.eat("cv") {
            return Some(format!("operator {}", self.type_()?));
        }
        if self.eat("li") {
            let len = self.number()?;
            let name = self.rest.get(..len)?;
            self.rest = &self.rest[len..];
            return Some(format!("operator\"\" {name}"));
        }
        const OPERATORS: [(&str, &str); 46] = [
            ("nw", " new"),
            ("na", " new[]"),
            ("dl", " delete"),
            ("da", " delete[]"),
            ("ps", "+"),
            ("ng", "-"),
            ("ad", "&"),
            ("de", "*"),
            ("co", "~"),
            ("pl", "+"),
            ("mi", "-"),
            ("ml", "*"),
            ("dv", "/"),
            ("rm", "%"),
            ("an", "&"),
            ("or", "|"),
            ("eo", "^"),
            ("aS", "="),
            ("pL", "+="),
            ("mI", "-="),
            ("mL", "*="),
            ("dV", "/="),
            ("rM", "%="),
            ("aN", "&="),
            ("oR", "|="),
            ("eO", "^="),
            ("ls", "<<"),
            ("rs", ">>"),
            ("lS", "<<="),
            ("rS", ">>="),
            ("eq", "=="),
            ("ne", "!="),
            ("lt", "<"),
            ("gt", ">"),
            ("le", "<="),
            ("ge", ">="),
            ("ss", "<=>"),
            ("nt", "!"),
            ("aa", "&&"),
            ("oo", "||"),
            ("pp", "++"),
            ("mm", "--"),
            ("cm", ","),
            ("pt", "->"),
            ("cl", "()"),
            ("ix", "[]"),
        ];
        let (code, text) = OPERATORS.iter().find(|o| self.rest.starts_with(o.0))?;
        self.rest = &self.rest[code.len()..];
        Some(format!("operator{text}"))
    }

    /// From `I` to its `E`. Behind the name of a function they are what template parameters stand for.
    fn template_arguments(&mut self) -> Option<String> {
        self.inside(|d| {
            d.eat("I").then_some(())?;
            let mut all = Vec::new();
            while !d.eat("E") {
                let argument = d.template_argument()?;
                all.push(argument);
            }
            let text = format!("<{}>", all.join(", "));
            d.arguments = all;
            Self::short(text)
        })
    }

    fn template_argument(&mut self) -> Option<String> {
        self.inside(|d| {
            if d.eat("J") {
                let mut all = Vec::new();
                while !d.eat("E") {
                    all.push(d.template_argument()?);
                }
                return Self::short(all.join(", "));
            }
            if d.eat("L") {
                if d.eat("_Z") {
                    let name = d.encoding()?;
                    while !d.eat("E") {
                        d.type_()?;
                    }
                    return Some(name);
                }
                let kind = d.type_()?;
                let end = d.rest.find('E')?;
                let (value, rest) = d.rest.split_at(end);
                d.rest = &rest[1..];
                let value = value
                    .strip_prefix('n')
                    .map_or(value.to_owned(), |v| format!("-{v}"));
                return Self::short(match &*kind {
                    "bool" if value == "0" => "false".into(),
                    "bool" if value == "1" => "true".into(),
                    "int" => value,
                    _ => format!("({kind}){value}"),
                });
            }
            // Expressions are not known here.
            (d.peek() != Some(b'X')).then_some(())?;
            d.type_()
        })
    }

    fn parameter(&mut self) -> Option<String> {
        self.eat("T").then_some(())?;
        let n = if self.peek() == Some(b'_') {
            0
        } else {
            self.base36(10)? + 1
        };
        self.eat("_").then_some(())?;
        self.arguments.get(n).cloned()
    }

    fn base36(&mut self, radix: u32) -> Option<usize> {
        let is = |b: &u8| b.is_ascii_digit() || radix == 36 && b.is_ascii_uppercase();
        let len = self.rest.bytes().take_while(is).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        usize::from_str_radix(digits, radix).ok()
    }

    fn substitution(&mut self) -> Option<String> {
        self.eat("S").then_some(())?;
        for (code, text) in [
            ("a", "std::allocator"),
            ("b", "std::basic_string"),
            ("s", "std::string"),
            ("i", "std::istream"),
            ("o", "std::ostream"),
            ("d", "std::iostream"),
        ] {
            if self.eat(code) {
                return Some(text.into());
            }
        }
        let n = if self.peek() == Some(b'_') {
            0
        } else {
            self.base36(36)?.checked_add(1)?
        };
        self.eat("_").then_some(())?;
        self.seen.get(n).cloned()
    }

    fn type_(&mut self) -> Option<String> {
        self.inside(|d| {
            for (code, suffix) in [
                ("P", "*"),
                ("R", "&"),
                ("O", "&&"),
                ("K", " const"),
                ("V", " volatile"),
            ] {
                if d.eat(code) {
                    let text = Self::short(format!("{}{suffix}", d.type_()?))?;
                    d.remember(&text);
                    return Some(text);
                }
            }
            const BUILTIN: [(&str, &str); 31] = [
                ("v", "void"),
                ("w", "wchar_t"),
                ("b", "bool"),
                ("c", "char"),
                ("a", "signed char"),
                ("h", "unsigned char"),
                ("s", "short"),
                ("t", "unsigned short"),
                ("i", "int"),
                ("j", "unsigned int"),
                ("l", "long"),
                ("m", "unsigned long"),
                ("x", "long long"),
                ("y", "unsigned long long"),
                ("n", "__int128"),
                ("o", "unsigned __int128"),
                ("f", "float"),
                ("d", "double"),
                ("e", "long double"),
                ("g", "__float128"),
                ("z", "..."),
                ("Dn", "decltype(nullptr)"),
                ("Da", "auto"),
                ("Dc", "decltype(auto)"),
                ("Di", "char32_t"),
                ("Ds", "char16_t"),
                ("Du", "char8_t"),
                ("Dh", "half"),
                ("Dd", "decimal64"),
                ("De", "decimal128"),
                ("Df", "decimal32"),
            ];
            if let Some((code, text)) = BUILTIN.iter().find(|b| d.rest.starts_with(b.0)) {
                d.rest = &d.rest[code.len()..];
                return Some((*text).into());
            }
            let text = match d.peek()? {
                b'F' => {
                    d.rest = &d.rest[1..];
                    d.eat("Y");
                    let result = d.type_()?;
                    let mut parameters = Vec::new();
                    while !d.eat("E") {
                        let parameter = d.type_()?;
                        if parameter != "void" {
                            parameters.push(parameter);
                        }
                    }
                    format!("{result} ({})", parameters.join(", "))
                }
                b'A' => {
                    d.rest = &d.rest[1..];
                    let len = d.number()?;
                    d.eat("_").then_some(())?;
                    format!("{} [{len}]", d.type_()?)
                }
                b'M' => {
                    d.rest = &d.rest[1..];
                    let class = d.type_()?;
                    format!("{} {class}::*", d.type_()?)
                }
                b'D' if d.eat("Dp") => return d.type_(),
                b'T' => {
                    let mut text = d.parameter()?;
                    d.remember(&text);
                    if d.peek() == Some(b'I') {
                        text += &d.template_arguments()?;
                        d.remember(&text);
                    }
                    return Self::short(text);
                }
                b'S' if !d.rest.starts_with("St") => {
                    let mut text = d.substitution()?;
                    if d.peek() == Some(b'I') {
                        text += &d.kept(Self::template_arguments)?;
                        d.remember(&text);
                    }
                    return Self::short(text);
                }
                b'N' | b'Z' | b'S' | b'0'..=b'9' => d.kept(Self::name)?,
                _ => return None,
            };
            let text = Self::short(text)?;
            d.remember(&text);
            Some(text)
        })
    }

    /// The template arguments of a type are not those of the function.
    fn kept<T>(&mut self, f: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let arguments = self.arguments.clone();
        let value = f(self);
        self.arguments = arguments;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_their_source_has_them() {
        for (name, expected) in [
            ("_Z3addii", "add"),
            ("_ZN4demo6Widget6divideEii", "demo::Widget::divide"),
            ("_ZN4demo6WidgetC2Ev", "demo::Widget::Widget"),
            ("_ZN4demo6WidgetD0Ev", "demo::Widget::~Widget"),
            ("_ZNK4demo6WidgeteqERKS0_", "demo::Widget::operator=="),
            ("_Z5twiceIiET_S0_", "twice<int>"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int>>::push_back",
            ),
            (
                "_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_",
                "std::move<int&>",
            ),
            ("_ZN12_GLOBAL__N_14hideEv", "(anonymous namespace)::hide"),
            ("_ZZ4mainENKUlvE_clEv", "main::{lambda#1}::operator()"),
            ("_ZTV6Widget", "vtable for Widget"),
            ("_Z3getILi3EEiv", "get<3>"),
            ("_Z1fIPFiPKcEEvT_", "f<int (char const*)*>"),
            (
                "_ZNSt3mapISsiSt4lessISsESaISt4pairIKSsiEEEixERS3_",
                "std::map<std::string, int, std::less<std::string>, std::allocator<std::pair<std::string const, int>>>::operator[]",
            ),
        ] {
            assert_eq!(demangle(name).as_deref(), Some(expected), "{name}");
        }
        for name in [
            "main",
            "_Z",
            "_ZN",
            "_Z9999999999999999999999x",
            "_ZNS_E",
            "_ZN3fooET_",
            "_ZN3f\u{e4}",
            "_ZNE",
        ] {
            let _ = demangle(name);
        }
        assert_eq!(demangle("main"), None);
    }

    #[test]
    fn hostile_names_end() {
        // Deep, exponential, and everything at random.
        for part in [
            "P", "N", "Z", "I", "1aI", "FP", "M1a", "UlE", "S_", "T_", "Dp", "A1_",
        ] {
            for start in ["_Z1f", "_ZN", "_Z"] {
                let _ = demangle(&format!("{start}{}", part.repeat(100_000)));
            }
        }
        let mut doubling = String::from("_Z1fI1a");
        for _ in 0..60 {
            doubling += "1bIS_S_E";
        }
        let _ = demangle(&doubling);
        let alphabet: Vec<char> = "NZIESTPRKLFXJC12345_abtsdiv".chars().collect();
        let mut random: u64 = 7;
        for _ in 0..20_000 {
            let mut name = String::from("_Z");
            for _ in 0..40 {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                name.push(alphabet[(random >> 33) as usize % alphabet.len()]);
            }
            assert!(
                demangle(&name).is_none_or(|text| text.len() <= 2 * WRITTEN),
                "{name}"
            );
        }
    }
}
