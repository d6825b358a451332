//! What the host gives to functions.

use std::collections::HashMap;

use ringfence::dynamic::{Incoming, Type};
use ringfence::{Caller, HostFunction, Imports, Ptr};
use ringfence_text::prototypes;

use crate::FunctionError;
use crate::value::Prototype;

/// The functions of the host that texts may call, by name and type. A text declares them and calls them like any other; a
/// declaration of another type is an error.
///
/// `malloc` and `free` are always there: they manage the runtime's heap, under its limit.
///
/// # Examples
/// ```
/// # use ringfence::DomainOptions;
/// use ringfence_functions::{BuiltIns, Runtime};
///
/// let built_ins = BuiltIns::new().func("limit", |n: i32, most: i32| n.min(most));
/// let runtime = Runtime::new(built_ins, &DomainOptions::default())?;
/// let f = runtime.create("f", "int limit(int, int); int f(int n) { return limit(2 * n, 100); }")?;
/// assert_eq!(f.typed::<(i32,), i32>()?.call(70)?, 100);
/// # Ok::<(), ringfence_functions::FunctionError>(())
/// ```
pub struct BuiltIns {
    pub(crate) imports: Imports,
    pub(crate) types: HashMap<String, Prototype>,
}

impl Default for BuiltIns {
    fn default() -> Self {
        let none = BuiltIns {
            imports: Imports::new(),
            types: HashMap::new(),
        };
        none.func("malloc", |caller: &Caller<'_>, len: u64| {
            let room = usize::try_from(len).ok();
            let made = room.and_then(|len| caller.memory().alloc_array::<u8>(len.max(1)).ok());
            made.map_or(Ptr::NULL, |room| room.leak().cast::<()>())
        })
        .func("free", |caller: &Caller<'_>, at: Ptr<()>| match at.is_null() {
            true => Ok(()),
            false => caller.memory().free(at),
        })
    }
}

impl BuiltIns {
    /// Only `malloc` and `free`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `function` under `name`: a closure as [`Imports::func`] takes it. The last one given under a name counts.
    #[must_use]
    pub fn func<M>(mut self, name: &str, function: impl HostFunction<M>) -> Self {
        let prototype = Prototype::of_host(&Type::of_host(&function));
        self.types.insert(name.to_owned(), prototype);
        self.imports = self.imports.func(name, function);
        self
    }

    /// Gives `function` under the name and the type of a declaration in C, such as `double scale(double, int)`. It reads its
    /// arguments and sets its result by itself; an `Err` ends the call.
    ///
    /// # Errors
    /// [`FunctionError::Text`], or [`FunctionError::Declaration`] if that is not one declaration of a function.
    pub fn dynamic(
        mut self,
        declaration: &str,
        function: impl Fn(&mut Incoming<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self, FunctionError> {
        // A declaration ends with a semicolon; a second one is none.
        let declared = prototypes(&format!("{};", declaration.trim_end().trim_end_matches(';')))?;
        let [declared] = &declared[..] else {
            return Err(FunctionError::Declaration {
                text: declaration.to_owned(),
            });
        };
        self.types
            .insert(declared.name.clone(), Prototype::of_import(declared));
        self.imports = self.imports.dynamic(&declared.name, function);
        Ok(self)
    }
}

impl std::fmt::Debug for BuiltIns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for (name, prototype) in &self.types {
            map.entry(name, &format_args!("{prototype}"));
        }
        map.finish()
    }
}
