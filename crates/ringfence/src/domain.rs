//! Domains: running instances of modules.

use std::fmt;
use std::time::Duration;

use ringfence_core::{DomainOptions, Feature, Instance, Unsupported};

use crate::backend::{self, Image, Kind, Target};
use crate::dynamic::Function;
use crate::value::{Arguments, Return};
use crate::{Code, CodeError, DomainError, Func, Grant, Imports, Memory, Module, ModuleError, Ptr, Usage};

/// A running instance of a module, or of several together, in a window of its own.
///
/// Cheap to clone; the domain goes when the last clone and the last [`Func`] of it are dropped. All functions
/// may be called from any thread. Several threads may run in one domain at once, each on its own stacks, if the
/// module is written for threads.
///
/// # Examples
/// ```no_run
/// use ringfence::{Domain, Imports, Module};
///
/// let domain = Domain::new(&Module::open("math.rf")?, Imports::new())?;
/// let add = domain.func::<(i32, i32), i32>("add")?;
/// assert_eq!(add.call(2, 3)?, 5);
/// # Ok::<(), ringfence::Error>(())
/// ```
#[derive(Clone)]
pub struct Domain(pub(crate) Kind);

impl Domain {
    pub(crate) fn instance(&self) -> &dyn Instance {
        self.0.instance()
    }

    fn target(&self, name: &str) -> Result<Target, DomainError> {
        Ok(match &self.0 {
            Kind::Window(domain) => Target::Window(domain.entry(name)?),
            Kind::Other(instance) => Target::Other(instance.clone(), instance.function(name)?),
        })
    }

    fn target_at(&self, address: u64) -> Result<Target, DomainError> {
        Ok(match &self.0 {
            Kind::Window(domain) => Target::Window(domain.entry_by_address(address)?),
            Kind::Other(instance) => Target::Other(instance.clone(), instance.function_at(address)?),
        })
    }

    fn target_in(&self, module: &str, name: &str) -> Result<Target, DomainError> {
        let domain = self.0.window(Feature::Modules)?;
        Ok(Target::Window(domain.entry_in(module, name)?))
    }

    /// Which back end runs it.
    #[must_use]
    pub fn backend(&self) -> crate::Backend {
        self.instance().backend()
    }

    /// Makes a domain of `module` with default options, and runs its constructors.
    ///
    /// # Errors
    /// [`DomainError::Unresolved`] names an import that is missing; see [`DomainError`] for the rest.
    pub fn new(module: &Module, imports: Imports) -> Result<Self, DomainError> {
        Self::instantiate(std::slice::from_ref(module), imports, &DomainOptions::default())
    }

    /// Makes one domain of several modules (or of none, with [`DomainOptions::extensible`]: all its code comes later): imports of each are first looked for among the exports of the others, which
    /// they call without a gate. Constructors run in the order given.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn instantiate(
        modules: &[Module],
        imports: Imports,
        options: &DomainOptions,
    ) -> Result<Self, DomainError> {
        let images: Vec<Image> = modules.iter().map(|m| m.0.clone()).collect();
        imports.1.map_or(Ok(()), Err)?;
        backend::make(&images, imports.0, options).map(Self)
    }

    /// Runs the program (a module with a `main`) under a policy, with the policy's arguments and environment, and returns its
    /// exit status. The same monitor must have been given to the domain's imports.
    ///
    /// # Errors
    /// [`RunError`](crate::policy::program::RunError): the module is no program, or it failed.
    ///
    /// # Examples
    /// ```no_run
    /// use ringfence::policy::{Captured, Policy, Rights, Stream};
    /// use ringfence::{Domain, Imports, Module};
    ///
    /// let output = Captured::default();
    /// let monitor = Policy::new()
    ///     .args(["wc", "/data/words"])
    ///     .dir("words", "/data", Rights::Read)
    ///     .stdout(Stream::Capture(output.clone()))
    ///     .start()?;
    /// let domain = Domain::new(&Module::open("wc.rf")?, Imports::new().policy(monitor.clone()))?;
    /// let status = domain.run_program(&monitor)?;
    /// println!("{status}: {}", String::from_utf8_lossy(&output.take()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_program(
        &self,
        monitor: &crate::policy::Monitor,
    ) -> Result<i32, crate::policy::program::RunError> {
        crate::policy::program::run(self.instance(), monitor)
    }

    /// Finds an exported function. `A` is the tuple of its arguments and `R` its result, as the host claims them.
    ///
    /// # Errors
    /// [`DomainError::NoExport`] or [`DomainError::NotFunction`].
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Imports, Module, Ptr};
    /// # let domain = Module::open("x.rf")?.instantiate(Imports::new())?;
    /// let length = domain.func::<(Ptr<u8>,), usize>("strlen")?;
    /// let text = domain.memory().put_c_string("twelve bytes")?;
    /// assert_eq!(length.call(text.ptr())?, 12);
    /// # Ok::<(), ringfence::Error>(())
    /// ```
    pub fn func<A: Arguments, R: Return>(&self, name: &str) -> Result<Func<A, R>, DomainError> {
        Func::new(self.target(name)?)
    }

    /// The function behind a pointer that the domain handed out, such as a callback that it registered.
    ///
    /// This is the only way to call one; the pointer is checked to be a function's entry in this very domain.
    ///
    /// # Errors
    /// [`DomainError::NoEntry`] if no function of the domain starts there.
    pub fn func_at<A: Arguments, R: Return>(
        &self,
        at: impl Into<Ptr<()>>,
    ) -> Result<Func<A, R>, DomainError> {
        Func::new(self.target_at(at.into().address())?)
    }

    /// Finds an exported function whose type is known at run time only.
    ///
    /// # Errors
    /// [`DomainError::NoExport`] or [`DomainError::NotFunction`].
    pub fn function(&self, name: &str) -> Result<Function, DomainError> {
        self.target(name).map(Function::new)
    }

    /// As [`function`](Domain::function), of the module that was [added](Domain::add_module) under the name `module`.
    ///
    /// # Errors
    /// [`DomainError::NoModule`], [`DomainError::NoExport`], [`DomainError::NotFunction`].
    pub fn function_in(&self, module: &str, name: &str) -> Result<Function, DomainError> {
        self.target_in(module, name).map(Function::new)
    }

    /// The function behind an address that the domain handed out; see [`func_at`](Domain::func_at).
    ///
    /// # Errors
    /// [`DomainError::NoEntry`] if no function of the domain starts there.
    pub fn function_at(&self, address: u64) -> Result<Function, DomainError> {
        self.target_at(address).map(Function::new)
    }

    /// Address of a function or variable that a module exports: the one [added](Domain::add_module) under the name `module`, or
    /// any.
    #[must_use]
    pub fn symbol(&self, module: Option<&str>, name: &str) -> Option<u64> {
        self.instance().space().find(module, name)
    }

    /// Keeps a number of the host's with the domain, which [`dynamic::current_tag`](crate::dynamic::current_tag) tells to host
    /// functions that get no [`Caller`](crate::Caller). 0 at first.
    pub fn set_tag(&self, tag: u64) {
        self.instance().set_tag(tag);
    }

    /// The domain's memory.
    #[must_use]
    pub fn memory(&self) -> Memory<'_> {
        Memory::new(self.instance().space())
    }

    /// Address of an exported variable, or `None`.
    #[must_use]
    pub fn object<T>(&self, name: &str) -> Option<Ptr<T>> {
        self.symbol(None, name).map(Ptr::from_address)
    }

    /// Puts the domain back to its initial state: data, heap, stacks, host allocations, fault. That is the state right after it
    /// was made, or that of its last [`checkpoint`](Domain::checkpoint). The module is neither verified nor relocated again. [`Func`]s stay
    /// valid.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while a thread is inside.
    pub fn reset(&self) -> Result<(), DomainError> {
        self.instance().reset()
    }

    /// Gives this domain the function `export` of another one, under the name of one of its [slots](Imports::slot), in place of
    /// what is there. From any thread, while both run. The other domain is not kept alive: when it goes, calls fail.
    ///
    /// # Errors
    /// [`DomainError::Grant`] if there is no such slot; [`DomainError::NoExport`], [`DomainError::NotFunction`].
    ///
    /// # Examples
    /// ```no_run
    /// use ringfence::{Domain, Imports, Module, OnFailure, Signature};
    ///
    /// let signature = Signature { ints: 2, int_results: 1, ..Signature::NOTHING };
    /// let filter = Module::open("filter.rf")?
    ///     .instantiate(Imports::new().slot("lookup", signature, OnFailure::Tell))?;
    /// let table = Module::open("table.rf")?.instantiate(Imports::new())?;
    /// let grant = filter.grant("lookup", &table, "find")?;
    /// filter.func::<(), ()>("run")?.call()?; // calls `find` as `lookup`
    /// grant.revoke(); // from now on `lookup` fails
    /// # Ok::<(), ringfence::Error>(())
    /// ```
    pub fn grant(&self, slot: &str, domain: &Domain, export: &str) -> Result<Grant, DomainError> {
        let callee = domain.0.window(Feature::Grants)?.entry(export)?;
        Ok(self.0.window(Feature::Grants)?.grant(slot, &callee)?)
    }

    /// Empties a slot, of what was granted or of what the domain was made with: calls that begin from now on fail, calls in
    /// progress finish. True if something callable was in it.
    ///
    /// # Errors
    /// [`DomainError::Grant`] if there is no such slot.
    pub fn revoke(&self, slot: &str) -> Result<bool, DomainError> {
        Ok(self.0.window(Feature::Grants)?.revoke(slot)?)
    }

    /// Revokes all functions of this domain that other domains have.
    pub fn revoke_all(&self) {
        // Others have none.
        if let Kind::Window(domain) = &self.0 {
            domain.revoke_all();
        }
    }

    /// Makes the present state the one that [`reset`](Domain::reset) returns to: data, heap, and the thread-local variables of
    /// the thread that has been in the domain.
    ///
    /// # Errors
    /// [`SnapshotError`](crate::SnapshotError): refused while calls are in progress, after a fault, when several threads have
    /// been in the domain, when it has rights to regions, or its policy holds open descriptors for it.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Imports, Module};
    /// let domain = Module::open("interpreter.rf")?.instantiate(Imports::new())?;
    /// domain.func::<(), i32>("load_libraries")?.call()?;
    /// domain.checkpoint()?;
    /// domain.func::<(), i32>("run_request")?.call()?;
    /// domain.reset()?; // libraries are loaded, the request never was
    /// # Ok::<(), ringfence::Error>(())
    /// ```
    pub fn checkpoint(&self) -> Result<(), crate::SnapshotError> {
        self.instance().checkpoint()
    }

    /// What holds the process that runs the domain, besides the verifier.
    ///
    /// # Errors
    /// [`Unsupported`] if its [back end](Domain::backend) gives it none of its own.
    pub fn confinement(&self) -> Result<crate::Confinement, Unsupported> {
        self.instance().confinement()
    }

    /// Adds machine code to the living domain under a name: position-independent functions without relocations, data and
    /// jump tables. `A` and `R` are the type that the host claims the function at [`Code::entry`] has.
    ///
    /// # Errors
    /// [`CodeError`]; nothing has changed then.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Code, Domain};
    /// # fn example(domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// // marker; leal (%rdi,%rsi), %eax; ret
    /// let bytes = [0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3];
    /// let sum = domain.add_code::<(i32, i32), i32>("sum", &Code { bytes: &bytes, entry: 0 })?;
    /// assert_eq!(sum.call(2, 3)?, 5);
    /// domain.remove_code("sum")?;
    /// # Ok(()) }
    /// ```
    pub fn add_code<A: Arguments, R: Return>(
        &self,
        name: &str,
        code: &Code<'_>,
    ) -> Result<Func<A, R>, CodeError> {
        let domain = self.0.window(Feature::Code)?;
        let made = Func::of(domain.add_code(name, code)?);
        // Nobody can call it: it is not there.
        Ok(made.inspect_err(|_| drop(domain.remove_code(name)))?)
    }

    /// As [`add_code`](Domain::add_code), for a function whose type is known at run time only.
    ///
    /// # Errors
    /// [`CodeError`]; nothing has changed then.
    pub fn add_code_dynamic(&self, name: &str, code: &Code<'_>) -> Result<Function, CodeError> {
        let domain = self.0.window(Feature::Code)?;
        Ok(Function::new(Target::Window(domain.add_code(name, code)?)))
    }

    /// The address by which the domain's own code calls a host function: for code that is added. Host functions are those that the
    /// domain was made with and its first modules need, or all with [`DomainOptions::extensible`].
    ///
    /// # Errors
    /// [`DomainError::NoExport`] if there is none of that name; [`DomainError::Unsupported`] if the [back end](Domain::backend) takes
    /// no code.
    pub fn import_address(&self, name: &str) -> Result<Ptr<()>, DomainError> {
        let domain = self.0.window(Feature::Code)?;
        let address = domain.import_address(name);
        address
            .map(Ptr::from_address)
            .ok_or_else(|| DomainError::NoExport {
                name: name.to_owned(),
            })
    }

    /// Finds added code by its name.
    ///
    /// # Errors
    /// [`CodeError::Unknown`].
    pub fn find_code<A: Arguments, R: Return>(&self, name: &str) -> Result<Func<A, R>, CodeError> {
        let domain = self.0.window(Feature::Code)?;
        Ok(Func::of(domain.find_code(name)?)?)
    }

    /// Unlinks code. Calls of it fail from now on. Needs a moment in which no other thread is in the domain.
    ///
    /// # Errors
    /// [`CodeError::Unknown`], [`CodeError::InUse`]; nothing has changed then.
    pub fn remove_code(&self, name: &str) -> Result<(), CodeError> {
        self.0.window(Feature::Code)?.remove_code(name)
    }

    /// Adds a whole module to the living domain under a name, and runs its constructors. From any thread, while others run in the
    /// domain. Modules of a domain call each other directly, without a gate.
    ///
    /// Its imports are looked for among the exports of the modules that are there, in the order in which they came, then among the host
    /// functions that the domain was made with: those that its first modules need, or all of them if [`DomainOptions::extensible`] is
    /// set. What is there already reaches the new functions through addresses: hand them out, or give the domain a host function
    /// that looks symbols up ([`Caller::symbol`](crate::Caller::symbol)).
    ///
    /// It stays until it is removed or the domain is reset. Checkpoints and snapshots refuse domains with such modules.
    ///
    /// # Errors
    /// [`ModuleError`]; nothing has changed then, except that a constructor which fails by a fault leaves the domain faulted.
    ///
    /// # Examples
    /// ```no_run
    /// use ringfence::{Domain, DomainOptions, Imports, Module};
    ///
    /// let mut options = DomainOptions::default();
    /// options.extensible = true; // plug-ins may use all that the host gives
    /// let app = Module::open("app.rf")?;
    /// let domain = Domain::instantiate(&[app], Imports::new(), &options)?;
    /// domain.add_module("blur", &Module::open("blur.rf")?)?;
    /// domain.func_in::<(i32,), i32>("blur", "run")?.call(3)?;
    /// domain.remove_module("blur")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_module(&self, name: &str, module: &Module) -> Result<(), ModuleError> {
        let domain = self.0.window(Feature::Modules)?;
        match &module.0 {
            Image::Verified(module) => domain.add(name, module),
            Image::Plain(plain) => Err(ModuleError::Link {
                name: name.to_owned(),
                source: Box::new(DomainError::NotFor {
                    module: plain.name().to_owned(),
                    backend: self.backend(),
                }),
            }),
        }
    }

    /// Runs the destructors of a module that was added, and takes it away. Calls of its functions fail from now on. Needs
    /// moments in which no other thread is in the domain.
    ///
    /// # Errors
    /// [`ModuleError`]: it is on the calling thread's stack, another module needs it, other threads stay in the domain. Nothing has changed
    /// then, except as [`ModuleError::InUse`] and [`ModuleError::Fini`] say.
    pub fn remove_module(&self, name: &str) -> Result<(), ModuleError> {
        self.0.window(Feature::Modules)?.remove(name)
    }

    /// Runs the destructors of the domain's modules, as a program's end or `dlclose` does: functions with the attribute, what was given to
    /// `atexit`, destructors of static C++ objects; streams are written out. Under the domain's limits, and once until the next reset. A domain that is
    /// merely dropped ends as a killed process does.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while calls are in progress; [`DomainError::Fini`] if a destructor failed.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Imports, Module};
    /// let domain = Module::open("log.rf")?.instantiate(Imports::new())?;
    /// domain.func::<(), ()>("work")?.call()?;
    /// domain.run_destructors()?;
    /// # Ok::<(), ringfence::Error>(())
    /// ```
    pub fn run_destructors(&self) -> Result<(), DomainError> {
        self.instance().run_destructors()
    }

    /// Names of the modules that were added, in the order in which they came.
    #[must_use]
    pub fn module_names(&self) -> Vec<String> {
        match &self.0 {
            Kind::Window(domain) => domain.added_names(),
            // Modules cannot be added to others.
            Kind::Other(_) => Vec::new(),
        }
    }

    /// Finds a function of a module that was [added](Domain::add_module). [`func`](Domain::func) finds it too, behind those of
    /// the modules before it.
    ///
    /// # Errors
    /// [`DomainError::NoModule`], [`DomainError::NoExport`], [`DomainError::NotFunction`].
    pub fn func_in<A: Arguments, R: Return>(
        &self,
        module: &str,
        name: &str,
    ) -> Result<Func<A, R>, DomainError> {
        Func::new(self.target_in(module, name)?)
    }

    /// Address of a variable that a module which was added exports, or `None`.
    #[must_use]
    pub fn object_in<T>(&self, module: &str, name: &str) -> Option<Ptr<T>> {
        self.instance()
            .space()
            .find(Some(module), name)
            .map(Ptr::from_address)
    }

    /// Gives back the stacks of threads that have no call in progress. Their next call makes them again, with fresh thread-local
    /// variables. Heap that a [`Pool`](crate::Pool) keeps accessible goes, too. For domains that are to stay idle for some time. How many threads'
    /// stacks were given back.
    ///
    /// # Errors
    /// [`HostError`](crate::HostError) if the system refuses.
    pub fn trim(&self) -> Result<usize, crate::HostError> {
        self.instance().trim()
    }

    /// What the domain uses and has used: memory, time, calls, faults, descriptors.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Imports, Module};
    /// # let domain = Module::open("x.rf")?.instantiate(Imports::new())?;
    /// let usage = domain.usage();
    /// println!("{} calls, {} faults, {} bytes", usage.calls, usage.faults, usage.memory);
    /// # Ok::<(), ringfence::Error>(())
    /// ```
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.instance().usage()
    }

    /// Bytes of heap, anonymous maps and host allocations that the domain uses now; its limit is
    /// [`DomainOptions::memory_limit`].
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.instance().space().memory_used()
    }

    /// How often the domain was reset.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.instance().space().resets()
    }

    /// Ends all calls in progress, from any thread. Does nothing if there are none.
    ///
    /// # Errors
    /// [`Unsupported`] if the [back end](Domain::backend) cannot.
    pub fn interrupt(&self) -> Result<(), Unsupported> {
        self.instance().interrupt()
    }

    /// Whether the domain refuses calls until it is reset.
    #[must_use]
    pub fn faulted(&self) -> bool {
        self.instance().faulted()
    }

    /// How long each call that starts from now on may take, time in host functions included. A call that takes longer
    /// ends within 2 ms with [`FaultKind::TimeLimit`](crate::FaultKind::TimeLimit), or when the host function that it is in returns.
    ///
    /// # Errors
    /// [`Unsupported`] if the [back end](Domain::backend) has no limits.
    pub fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), Unsupported> {
        self.instance().set_time_limit(limit)
    }

    /// From now on time does not count against the limit of the calling thread's call in this domain, which has called a host function: see
    /// [`Caller::wait`](crate::Caller::wait), which is the safer form. It counts again from [`resume_time`](Self::resume_time) on, or when the
    /// thread enters the domain's code, whichever comes first. Pauses do not nest. Nothing happens without such a call.
    ///
    /// # Errors
    /// [`Unsupported`] if the [back end](Domain::backend) cannot ([`Feature::Pauses`](crate::Feature::Pauses)).
    pub fn pause_time(&self) -> Result<(), Unsupported> {
        self.backend().require(Feature::Pauses)?;
        self.instance().space().space().pause_time();
        Ok(())
    }

    /// Ends what [`pause_time`](Self::pause_time) began. Nothing happens if nothing did.
    ///
    /// # Errors
    /// As for `pause_time`.
    pub fn resume_time(&self) -> Result<(), Unsupported> {
        self.backend().require(Feature::Pauses)?;
        self.instance().space().space().resume_time();
        Ok(())
    }
}

impl Module {
    /// Makes a domain of this module alone, with the default options.
    ///
    /// # Errors
    /// [`DomainError`], for example when an import is missing.
    pub fn instantiate(&self, imports: Imports) -> Result<Domain, DomainError> {
        Domain::new(self, imports)
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("window", &format_args!("{:#x}", self.memory().base()))
            .field("faulted", &self.faulted())
            .finish()
    }
}
