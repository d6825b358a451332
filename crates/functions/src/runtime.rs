//! Runtimes: domains to which functions come as texts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringfence::{CodeError, Domain, DomainOptions, InUse, Memory};
use ringfence_text::{Compiled, compile};

use crate::places::Places;
use crate::trampolines::{DELETED, Names, Trampoline, Trampolines};
use crate::unit::{Import, Piece, Unit};
use crate::value::Prototype;
use crate::{BuiltIns, Func, FunctionError};

/// Functions that call each other, share a heap, and come and go. Cheap to clone; all may be called from any thread.
///
/// A function that fails (a wild pointer, a division by zero, the time limit) ends its call with an error, and the runtime refuses
/// calls until [`reset`](Runtime::reset), because data may be half-changed. Nothing outside the runtime is touched.
#[derive(Clone)]
pub struct Runtime(Arc<Shared>);

/// Functions of a text that is replaced: object code may have tens of thousands.
type ByName<'a> = HashMap<&'a str, &'a Arc<Trampoline>>;

/// What handles keep alive.
pub(crate) struct Shared {
    domain: Domain,
    built_ins: HashMap<String, Prototype>,
    names: Names,
    /// Where the texts are.
    places: Places,
    state: Mutex<State>,
}

struct State {
    /// All functions.
    functions: HashMap<Arc<str>, Arc<Trampoline>>,
    /// The texts, by the name that each was given for.
    units: BTreeMap<Arc<str>, Unit>,
    trampolines: Trampolines,
    /// Texts that were replaced or deleted while somebody was in them.
    leaving: Vec<(Piece, Vec<Import>)>,
    /// Functions that were deleted, while somebody holds them.
    deleted: Vec<Arc<Trampoline>>,
    /// Numbers of texts.
    next: u64,
    /// How often the runtime was made: 1, and once more for each reset.
    life: u64,
}

impl Runtime {
    /// A runtime without functions. `options` are those of its domain: the time limit of a call, the limit of memory and of code,
    /// threads. Its back end has to be a window.
    ///
    /// # Errors
    /// [`FunctionError::Domain`] and [`FunctionError::Code`]: the system has no room for one, or an option cannot be.
    pub fn new(built_ins: BuiltIns, options: &DomainOptions) -> Result<Runtime, FunctionError> {
        let mut options = options.clone();
        options.extensible = true;
        let names = Names::default();
        let told = names.clone();
        let imports = built_ins
            .imports
            .func(DELETED, move |number: u32| Err::<(), _>(told.called(number)));
        let domain = Domain::instantiate(&[], imports, &options)?;
        let trampolines = Trampolines::new(&domain)?;
        Ok(Runtime(Arc::new(Shared {
            domain,
            built_ins: built_ins.types,
            names,
            places: Places::default(),
            state: Mutex::new(State {
                functions: HashMap::new(),
                units: BTreeMap::new(),
                trampolines,
                leaving: Vec::new(),
                deleted: Vec::new(),
                next: 0,
                life: 1,
            }),
        })))
    }

    /// Compiles a text in C that defines the function `name`, has its code verified, and adds it. The text may define other
    /// functions: those that are not static become functions of the runtime as well, and come and go with this one.
    ///
    /// What the text declares without defining it are other functions of the runtime, or built-in ones.
    ///
    /// # Errors
    /// [`FunctionError`]; nothing has changed then.
    pub fn create(&self, name: &str, text: &str) -> Result<Func, FunctionError> {
        self.create_compiled(name, compile(text)?)
    }

    /// As [`create`](Self::create), of a text that was compiled before.
    ///
    /// # Errors
    /// [`FunctionError`]; nothing has changed then.
    pub fn create_compiled(&self, name: &str, compiled: Compiled) -> Result<Func, FunctionError> {
        let mut state = self.0.lock();
        state.tidy(&self.0);
        if state.functions.contains_key(name) {
            return Err(FunctionError::Exists {
                name: name.to_owned(),
            });
        }
        state.add(&self.0, name, compiled, Vec::new())?;
        drop(state);
        self.lookup(name)
    }

    /// As [`create`](Self::create), of object code: what [`Compiled::object`] made of a text, here or elsewhere. It is trusted no more
    /// than a text.
    ///
    /// # Errors
    /// [`FunctionError::Object`], and as for [`create`](Self::create); nothing has changed then.
    ///
    /// # Examples
    /// ```
    /// # use ringfence::DomainOptions;
    /// use ringfence_functions::{BuiltIns, Runtime, compile};
    ///
    /// let object = compile("long twice(long n) { return 2 * n; }")?.object();
    /// let runtime = Runtime::new(BuiltIns::new(), &DomainOptions::default())?;
    /// let twice = runtime.create_object("twice", &object)?;
    /// assert_eq!(twice.typed::<(i64,), i64>()?.call(21)?, 42);
    /// # Ok::<(), ringfence_functions::FunctionError>(())
    /// ```
    pub fn create_object(&self, name: &str, object: &[u8]) -> Result<Func, FunctionError> {
        self.create_compiled(name, Compiled::from_object(object)?)
    }

    /// Puts another text in the place of that of the function `name`. Calls that begin from now on, from wherever, are calls of the new one;
    /// calls in progress finish in the old one. Types stay; functions that the new text lacks are deleted; static data begins anew.
    ///
    /// # Errors
    /// [`FunctionError::Type`] if a function has another type, and as for [`create`](Self::create); nothing has changed then.
    pub fn replace(&self, name: &str, text: &str) -> Result<Func, FunctionError> {
        self.replace_compiled(name, compile(text)?)
    }

    /// As [`replace`](Self::replace), by a text that was compiled before.
    ///
    /// # Errors
    /// As for [`replace`](Self::replace).
    pub fn replace_compiled(&self, name: &str, compiled: Compiled) -> Result<Func, FunctionError> {
        let mut state = self.0.lock();
        state.tidy(&self.0);
        let old = state.unit(name)?.trampolines.clone();
        let old_unit = state.add(&self.0, name, compiled, old)?;
        if let Some(unit) = old_unit {
            state.leave(&self.0, unit.piece, unit.imports);
        }
        drop(state);
        self.lookup(name)
    }

    /// As [`replace`](Self::replace), by object code.
    ///
    /// # Errors
    /// As for [`create_object`](Self::create_object) and [`replace`](Self::replace).
    pub fn replace_object(&self, name: &str, object: &[u8]) -> Result<Func, FunctionError> {
        self.replace_compiled(name, Compiled::from_object(object)?)
    }

    /// Deletes a function, with those that came with it. Calls of it fail from now on, also by other functions; calls in progress
    /// finish. Its name is free at once.
    ///
    /// # Errors
    /// [`FunctionError::Unknown`]; [`FunctionError::Part`] if it came with another one.
    pub fn delete(&self, name: &str) -> Result<(), FunctionError> {
        let mut state = self.0.lock();
        state.unit(name)?;
        let unit = state.units.remove(name).expect("it is there");
        for trampoline in unit.trampolines {
            state.forget(&self.0, trampoline);
        }
        state.leave(&self.0, unit.piece, unit.imports);
        state.tidy(&self.0);
        Ok(())
    }

    /// Finds a function.
    ///
    /// # Errors
    /// [`FunctionError::Unknown`].
    pub fn lookup(&self, name: &str) -> Result<Func, FunctionError> {
        let state = self.0.lock();
        let trampoline = state.functions.get(name);
        let trampoline = trampoline.ok_or_else(|| FunctionError::Unknown {
            name: name.to_owned(),
        })?;
        Ok(Func {
            trampoline: trampoline.clone(),
        })
    }

    /// The names of all functions, in the order of the alphabet.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.lock().functions.keys().map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }

    /// How many names the runtime keeps: of functions, and of deleted ones that somebody holds.
    #[must_use]
    pub fn kept(&self) -> usize {
        let mut state = self.0.lock();
        state.tidy(&self.0);
        state.functions.len() + state.deleted.len()
    }

    /// Makes all data as they were at first, and the heap empty; the functions stay, and their handles. After a call that has failed the
    /// runtime takes calls again from then on.
    ///
    /// # Errors
    /// [`FunctionError::Domain`] if calls are in progress, or the domain has had as many faults as it may; if there is no room any more, the
    /// runtime refuses calls, and another reset may help.
    pub fn reset(&self) -> Result<(), FunctionError> {
        let mut state = self.0.lock();
        let domain = &self.0.domain;
        domain.reset()?;
        state.leaving.clear();
        self.0.places.clear();
        state.life += 1;
        let life = state.life;
        let mut trampolines = Trampolines::new(domain)?;
        trampolines.regrow(domain, &state.trampolines)?;
        let state = &mut *state;
        // All get their new addresses before any is linked with them.
        for trampoline in state.functions.values().chain(&state.deleted) {
            trampoline.renew(trampolines.place(domain, trampoline.number)?.entry, life);
        }
        for (name, unit) in &mut state.units {
            state.next += 1;
            unit.piece = Piece::link(
                domain,
                &self.0.places,
                name,
                state.next,
                &unit.piece.compiled,
                &unit.imports,
            )?;
            for (trampoline, export) in unit.trampolines.iter().zip(&unit.piece.compiled.exports) {
                trampolines.lead(
                    domain,
                    trampoline.number,
                    unit.piece.code + u64::from(export.offset),
                )?;
            }
        }
        state.trampolines = trampolines;
        Ok(())
    }

    /// The runtime's memory, to pass data to functions.
    #[must_use]
    pub fn memory(&self) -> Memory<'_> {
        self.0.domain.memory()
    }

    /// The domain behind it: its limits and usage, regions, code beside the functions. A reset of the domain itself takes the functions
    /// away until [`reset`](Self::reset) of the runtime.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.0.domain
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runtime").field(&self.names()).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a text's import is; `own` are functions that will not be there when it is called.
    fn resolve(
        &self,
        state: &State,
        import: &ringfence_text::Import,
        own: &ByName<'_>,
    ) -> Result<Import, FunctionError> {
        let name = &import.name;
        let wanted = Prototype::of_import(import);
        let (has, fits, found) = match state.functions.get(&**name) {
            Some(trampoline) if own.get(&**name).is_some_and(|s| Arc::ptr_eq(s, trampoline)) => {
                return Err(FunctionError::NotDefined { name: name.clone() });
            }
            Some(trampoline) => (
                &trampoline.prototype,
                trampoline.prototype == wanted,
                Import::Trampoline(trampoline.clone()),
            ),
            None => {
                let missing = || FunctionError::Missing { name: name.clone() };
                let has = self.built_ins.get(name).ok_or_else(missing)?;
                let address = self.domain.import_address(name)?.address();
                (has, has.serves(&wanted), Import::BuiltIn(address))
            }
        };
        match fits {
            true => Ok(found),
            false => Err(FunctionError::Type {
                name: name.clone(),
                has: has.to_string(),
                wanted: wanted.to_string(),
            }),
        }
    }
}

impl State {
    /// The text that was given for a function.
    fn unit(&self, name: &str) -> Result<&Unit, FunctionError> {
        if let Some(unit) = self.units.get(name) {
            return Ok(unit);
        }
        let with = self.units.iter().find(|(_, unit)| {
            unit.trampolines
                .iter()
                .any(|trampoline| &*trampoline.name == name)
        });
        Err(match with {
            Some((with, _)) => FunctionError::Part {
                name: name.to_owned(),
                with: with.to_string(),
            },
            None => FunctionError::Unknown {
                name: name.to_owned(),
            },
        })
    }

    /// Adds a text, in place of one whose functions are `old`, and gives back what it replaces.
    fn add(
        &mut self,
        shared: &Shared,
        name: &str,
        compiled: Compiled,
        old: Vec<Arc<Trampoline>>,
    ) -> Result<Option<Unit>, FunctionError> {
        if !compiled.exports.iter().any(|e| e.name == name) {
            return Err(FunctionError::NotDefined {
                name: name.to_owned(),
            });
        }
        let by_name: ByName<'_> = old
            .iter()
            .map(|trampoline| (&*trampoline.name, trampoline))
            .collect();
        for export in &compiled.exports {
            let given = Prototype::of_export(export);
            match by_name.get(&*export.name) {
                Some(trampoline) if trampoline.prototype == given => {}
                Some(trampoline) => {
                    return Err(FunctionError::Type {
                        name: export.name.clone(),
                        has: trampoline.prototype.to_string(),
                        wanted: given.to_string(),
                    });
                }
                None if self.functions.contains_key(&*export.name)
                    || shared.built_ins.contains_key(&export.name) =>
                {
                    return Err(FunctionError::Exists {
                        name: export.name.clone(),
                    });
                }
                None => {}
            }
        }
        let imports = compiled.imports.iter().map(|i| shared.resolve(self, i, &by_name));
        let imports: Vec<Import> = imports.collect::<Result<_, _>>()?;
        self.next += 1;
        let compiled = Arc::new(compiled);
        let piece = Piece::link(
            &shared.domain,
            &shared.places,
            name,
            self.next,
            &compiled,
            &imports,
        )?;
        let trampolines = match self.trampolines_for(shared, &compiled, &by_name) {
            Ok(trampolines) => trampolines,
            Err(e) => {
                self.leave(shared, piece, imports);
                return Err(e);
            }
        };
        // Nothing can fail from here on: the words are the runtime's own memory.
        for (trampoline, export) in trampolines.iter().zip(&compiled.exports) {
            self.trampolines.lead(
                &shared.domain,
                trampoline.number,
                piece.code + u64::from(export.offset),
            )?;
            self.functions.insert(trampoline.name.clone(), trampoline.clone());
        }
        let kept: HashSet<u32> = trampolines.iter().map(|trampoline| trampoline.number).collect();
        for trampoline in old.iter().filter(|old| !kept.contains(&old.number)) {
            self.forget(shared, trampoline.clone());
        }
        let unit = Unit {
            imports,
            trampolines,
            piece,
        };
        Ok(self.units.insert(name.into(), unit))
    }

    /// A trampoline for each function of a text: that which it has already, or a new one.
    fn trampolines_for(
        &mut self,
        shared: &Shared,
        compiled: &Compiled,
        old: &ByName<'_>,
    ) -> Result<Vec<Arc<Trampoline>>, FunctionError> {
        let mut trampolines: Vec<Arc<Trampoline>> = Vec::with_capacity(compiled.exports.len());
        let mut taken = Vec::new();
        for export in &compiled.exports {
            if let Some(&trampoline) = old.get(&*export.name) {
                trampolines.push(trampoline.clone());
                continue;
            }
            match self.trampolines.take(&shared.domain) {
                Ok(place) => {
                    taken.push(place.number);
                    let prototype = Prototype::of_export(export);
                    trampolines.push(Arc::new(Trampoline::new(
                        &export.name,
                        prototype,
                        place,
                        self.life,
                        &shared.places,
                    )));
                }
                Err(e) => {
                    taken.into_iter().for_each(|number| self.trampolines.give(number));
                    return Err(e);
                }
            }
        }
        Ok(trampolines)
    }

    /// A function is deleted.
    fn forget(&mut self, shared: &Shared, trampoline: Arc<Trampoline>) {
        self.functions.remove(&trampoline.name);
        trampoline.kill();
        shared.names.set(trampoline.number, &trampoline.name);
        // The word is the runtime's own memory. If a text has unmapped it, calls of it fail anyway.
        let _ = self.trampolines.lead_nowhere(&shared.domain, trampoline.number);
        self.deleted.push(trampoline);
    }

    /// A text goes, at once or when nobody is in it any more; until then it may call what it was linked with.
    fn leave(&mut self, shared: &Shared, piece: Piece, imports: Vec<Import>) {
        if piece.unlink(&shared.domain, &shared.places).is_err() {
            self.leaving.push((piece, imports));
        }
    }

    /// Takes away what nobody is in and nobody holds any more.
    fn tidy(&mut self, shared: &Shared) {
        // Where others stay in the domain nothing can go, and each try would wait for them.
        let mut busy = false;
        self.leaving.retain(|(piece, _)| {
            let left = if busy {
                None
            } else {
                piece.unlink(&shared.domain, &shared.places).err()
            };
            busy |= matches!(left, Some(CodeError::InUse(InUse::Busy { .. })));
            busy || left.is_some()
        });
        let trampolines = &mut self.trampolines;
        self.deleted.retain(|trampoline| {
            let held = Arc::strong_count(trampoline) > 1;
            if !held {
                shared.names.clear(trampoline.number);
                trampolines.give(trampoline.number);
            }
            held
        });
    }
}
