//! Filters, and what makes them.

use std::sync::atomic::{AtomicU64, Ordering};

use ringfence::{DomainOptions, MemoryError, Ptr};
use ringfence_functions::{
    BuiltIns, Compiled, Export, FunctionError, Kind, Prototype, Runtime, TypedFunc, compile,
};

use crate::batch::Batch;
use crate::bpf::{BadProgram, Raw, decode};
use crate::pcap;
use crate::translate::translate;

/// The link type of Ethernet: `DLT_EN10MB`.
pub const ETHERNET: i32 = 1;

/// The link type of packets that begin with an IP header: `DLT_RAW`.
pub const RAW_IP: i32 = 12;

/// Why there is no filter, or no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// libpcap does not take the expression; in its own words.
    #[error("{message}")]
    Expression {
        /// What it says.
        message: String,
    },
    /// libpcap, which compiles expressions, is not installed.
    #[error("expressions need libpcap, which is not here ({reason}); install the package libpcap0.8")]
    NoLibrary {
        /// What the loader says.
        reason: String,
    },
    /// A BPF program is none.
    #[error(transparent)]
    Program(#[from] BadProgram),
    /// No way was found to encode a program.
    #[error("no way was found to encode this program; change a constant")]
    Encoding,
    /// A filter in C does not compile, or has failed. After a failure all filters of the engine refuse packets until it is reset.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The filters' memory is full.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A filter has returned what cannot be: it has written where it should not.
    #[error("the filter says that it has accepted {0} packets, which are not there")]
    Lies(u64),
}

/// What makes filters: one place behind the fence for all of them. Cheap to clone, and for any thread.
///
/// Filters of expressions cannot fail. Those in C can, and share memory: give strangers engines of their own.
#[derive(Clone, Debug)]
pub struct Engine(Runtime);

/// What a text in C gets behind it: the loop over packets. `TIME` stands for the last argument, if the function has it.
const LOOP: &str = "
struct rf_packet_ { unsigned at, length, wire, time; };
unsigned long NAME(const struct rf_packet_ *rf_p, unsigned long rf_n, unsigned *rf_to)
{
	unsigned long rf_base = (unsigned long)rf_p & ~0xffffffffUL;
	for (unsigned rf_i = 0; rf_i < rf_n; rf_i++)
		if (filter((void *)(rf_base + rf_p[rf_i].at), rf_p[rf_i].length, rf_p[rf_i].wireTIME))
			*rf_to++ = rf_i;
	return (unsigned long)rf_to;
}
";

/// The packet's time, from its descriptor.
const TIME: &str = ", *(const unsigned long *)(rf_base + rf_p[rf_i].time)";

impl Engine {
    /// An engine without filters. The options are those of a [`Runtime`]: time limit of a batch, memory.
    ///
    /// # Errors
    /// [`FilterError::Function`].
    pub fn new(options: &DomainOptions) -> Result<Engine, FilterError> {
        // What it costs to enter is little beside a batch.
        let mut options = options.clone();
        options.x87 = true;
        Ok(Engine(Runtime::new(BuiltIns::new(), &options)?))
    }

    /// A filter of an expression of pcap-filter(7), for packets of a link type (`DLT_…`). Names of hosts and services are looked up on
    /// this machine, by libpcap.
    ///
    /// # Errors
    /// [`FilterError::Expression`], [`FilterError::NoLibrary`].
    pub fn expression(&self, expression: &str, link: i32) -> Result<Filter, FilterError> {
        self.program(&pcap::compile(expression, link)?)
    }

    /// A filter of a BPF program. A packet is accepted if it returns anything but 0.
    ///
    /// # Errors
    /// [`FilterError::Program`], [`FilterError::Encoding`].
    pub fn program(&self, program: &[Raw]) -> Result<Filter, FilterError> {
        let code = translate(&decode(program)?).ok_or(FilterError::Encoding)?;
        let name = new_name();
        let compiled = Compiled {
            code,
            exports: vec![Export {
                name: name.clone(),
                offset: 0,
                params: vec![Kind::Pointer, Kind::Int(8, false), Kind::Pointer],
                result: Kind::Int(8, false),
            }],
            ..Compiled::default()
        };
        self.add(name, compiled)
    }

    /// A filter that is a text in C with `int filter(const unsigned char *packet, unsigned length, unsigned wire)`, which says whether
    /// a packet is wanted. It may have a fourth parameter, `unsigned long time`: when the packet came, in nanoseconds
    /// ([`Batch::push_at`]). Its static data stay from packet to packet; other functions of the text should be static.
    ///
    /// # Errors
    /// [`FilterError::Function`], with each place of the text that is wrong.
    pub fn function(&self, text: &str) -> Result<Filter, FilterError> {
        // Errors are told of the text as it was given.
        let own = compile(text).map_err(FunctionError::from)?;
        let filter = own.exports.iter().find(|e| e.name == "filter");
        let name = || "filter".to_owned();
        let Some(filter) = filter else {
            return Err(FunctionError::NotDefined { name: name() }.into());
        };
        let wanted = [
            Kind::Pointer,
            Kind::Int(4, false),
            Kind::Int(4, false),
            Kind::Int(8, false),
        ];
        let timed = filter.params == wanted;
        if !timed && filter.params != wanted[..3] || !matches!(filter.result, Kind::Int(..) | Kind::Bool) {
            let has = Prototype {
                params: filter.params.clone(),
                result: filter.result,
                variadic: false,
            };
            return Err(FunctionError::Type {
                name: name(),
                has: has.to_string(),
                wanted: "int (const unsigned char *packet, unsigned length, unsigned wire), with unsigned long time behind it or without".into(),
            }
            .into());
        }
        let run = new_name();
        let around = LOOP
            .replace("NAME", &run)
            .replace("TIME", if timed { TIME } else { "" });
        let mut compiled = compile(&format!("{text}{around}")).map_err(FunctionError::from)?;
        // All filters of an engine have one of that name: it is reached through the loop only.
        compiled.exports.retain(|e| e.name == run);
        self.add(run, compiled)
    }

    fn add(&self, name: String, compiled: Compiled) -> Result<Filter, FilterError> {
        let made = Filter {
            run: self.0.create_compiled(&name, compiled)?.typed()?,
            runtime: self.0.clone(),
        };
        Ok(made)
    }

    /// An empty batch, for filters of this engine.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch::new(&self.0)
    }

    /// After a failure: the static data of all filters are as they were at first, and filters take packets again.
    ///
    /// # Errors
    /// [`FilterError::Function`].
    pub fn reset(&self) -> Result<(), FilterError> {
        Ok(self.0.reset()?)
    }

    /// The runtime that has the filters.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.0
    }
}

/// A name that no other filter of the process has.
fn new_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("rf_filter_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A filter. Its code goes with it.
#[derive(Debug)]
pub struct Filter {
    runtime: Runtime,
    run: TypedFunc<(Ptr<()>, u64, Ptr<()>), u64>,
}

impl Filter {
    /// Looks at all packets of a batch of the same engine, in one crossing. The numbers of those that it accepts, ascending.
    ///
    /// # Errors
    /// [`FilterError::Function`] if a filter in C fails, [`FilterError::Memory`].
    ///
    /// # Panics
    /// If the batch is another engine's.
    pub fn run<'a>(&self, batch: &'a mut Batch) -> Result<&'a [u32], FilterError> {
        let (packets, results) = batch.load()?;
        let count = batch.len() as u64;
        let end = self.run.call(packets, count, results)?.into_inner_unchecked();
        // Addresses are known by their lower halves.
        let accepted = u64::from((end as u32).wrapping_sub(results.address() as u32) / 4);
        if accepted > count {
            return Err(FilterError::Lies(accepted));
        }
        Ok(batch.accepted(results, accepted as usize)?)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let _ = self.runtime.delete(self.run.untyped().name());
    }
}
