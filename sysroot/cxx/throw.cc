// What throwing needs of an unwinder, for as long as the runtime tells a domain nothing about its frames: no frame can
// be found that catches, so every exception ends the call, through std::terminate, which says which one it was.
#include <unwind.h>

extern "C" {

_Unwind_Reason_Code _Unwind_RaiseException(_Unwind_Exception *) { return _URC_END_OF_STACK; }

_Unwind_Reason_Code _Unwind_Resume_or_Rethrow(_Unwind_Exception *) { return _URC_END_OF_STACK; }

// Landing pads call these two, and frames name the third; none is reached before a frame has been found.
void _Unwind_Resume(_Unwind_Exception *) { __builtin_trap(); }

void __cxa_call_unexpected(void *) { __builtin_trap(); }

_Unwind_Reason_Code __gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception *,
                                         _Unwind_Context *)
{
	return _URC_FATAL_PHASE1_ERROR;
}

void _Unwind_DeleteException(_Unwind_Exception *exception)
{
	if (exception->exception_cleanup)
		exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
}

// What destructors of static objects are registered with. A module has one list of them.
extern void *const __dso_handle;
__attribute__((visibility("hidden"))) void *const __dso_handle = nullptr;

}
