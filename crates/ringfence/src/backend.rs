//! Which back end runs a domain. Windows are called directly, all others through [`Instance`].

use std::ffi::c_void;
use std::sync::Arc;

use ringfence_core::{
    Backend, CallError, Confinement, DomainError, Feature, Instance, Signature, Unsupported,
};
use ringfence_runtime as runtime;

/// A module as its back end has it.
#[derive(Clone)]
pub(crate) enum Image {
    /// Verified, for windows and processes.
    Verified(runtime::Module),
    /// For no fence.
    Plain(ringfence_none::Module),
}

/// A domain as its back end has it.
#[derive(Clone)]
pub(crate) enum Kind {
    /// In a window of this process.
    Window(runtime::Domain),
    /// Anything else.
    Other(Arc<dyn Instance>),
}

impl Kind {
    pub(crate) fn instance(&self) -> &dyn Instance {
        match self {
            Kind::Window(domain) => domain,
            Kind::Other(instance) => &**instance,
        }
    }

    /// The domain, if it has a window: for what only such have.
    pub(crate) fn window(&self, feature: Feature) -> Result<&runtime::Domain, Unsupported> {
        match self {
            Kind::Window(domain) => Ok(domain),
            Kind::Other(instance) => Err(Unsupported {
                feature,
                backend: instance.backend(),
            }),
        }
    }

    /// Whether nobody else has a handle to it.
    pub(crate) fn is_unique(&self) -> bool {
        match self {
            Kind::Window(domain) => domain.is_unique(),
            Kind::Other(instance) => Arc::strong_count(instance) == 1,
        }
    }
}

/// A function of a domain, as its back end has it.
#[derive(Clone)]
pub(crate) enum Target {
    /// In a window.
    Window(runtime::Entry),
    /// At this address of a domain elsewhere.
    Other(Arc<dyn Instance>, u64),
}

impl Target {
    pub(crate) fn address(&self) -> u64 {
        match self {
            Target::Window(entry) => entry.address(),
            Target::Other(_, address) => *address,
        }
    }

    /// A C function pointer for this type.
    ///
    /// # Errors
    /// [`DomainError`] if there is no memory for one.
    pub(crate) fn thunk(&self, signature: Signature) -> Result<*const c_void, DomainError> {
        match self {
            Target::Window(entry) => Ok(entry.try_thunk(signature)?),
            Target::Other(instance, address) => instance.thunk(*address, &signature),
        }
    }

    pub(crate) fn call(&self, call: &mut runtime::Call<'_>) -> Result<runtime::Returned, CallError> {
        match self {
            Target::Window(entry) => entry.call(call),
            Target::Other(instance, address) => instance.call(*address, call),
        }
    }
}

/// What domains in processes of their own ([`Backend::Process`]) are locked in with on this machine, besides the verifier. A process is
/// started for it, which takes some milliseconds; [`Domain::confinement`](crate::Domain::confinement) tells it of a domain.
///
/// # Errors
/// [`DomainError::Worker`] if there is no such process here: why, and what helps.
pub fn process_confinement() -> Result<Confinement, DomainError> {
    ringfence_process::confinement()
}

/// The modules as windows and processes take them.
fn verified(images: &[Image], backend: Backend) -> Result<Vec<runtime::Module>, DomainError> {
    let one = |image: &Image| match image {
        Image::Verified(module) => Ok(module.clone()),
        Image::Plain(module) => Err(DomainError::NotFor {
            module: module.name().to_owned(),
            backend,
        }),
    };
    images.iter().map(one).collect()
}

/// Makes a domain with the back end that the options name.
pub(crate) fn make(
    images: &[Image],
    imports: runtime::Imports,
    options: &runtime::DomainOptions,
) -> Result<Kind, DomainError> {
    match options.backend {
        Backend::Window => {
            let modules = verified(images, Backend::Window)?;
            runtime::Domain::new(&modules, imports, options).map(Kind::Window)
        }
        Backend::None => {
            let one = |image: &Image| match image {
                Image::Plain(module) => Ok(module.clone()),
                Image::Verified(module) => Err(DomainError::NotFor {
                    module: module.name().to_owned(),
                    backend: Backend::None,
                }),
            };
            let modules: Vec<_> = images.iter().map(one).collect::<Result<_, _>>()?;
            let given = imports.for_backend(Backend::None)?;
            let reporting = runtime::domain::reporting();
            let domain = ringfence_none::Domain::new(&modules, &given, options, reporting)?;
            Ok(Kind::Other(Arc::new(domain)))
        }
        Backend::Process => {
            let modules = verified(images, Backend::Process)?;
            let given = imports.for_backend(Backend::Process)?;
            let reporting = runtime::domain::reporting();
            let domain = ringfence_process::Domain::new(&modules, given, options, reporting)?;
            Ok(Kind::Other(Arc::new(domain)))
        }
        other => Err(DomainError::Option {
            option: "backend",
            reason: format!("there is no back end {other} here"),
        }),
    }
}
