# Backtraces through the gates in both directions: run.sh compares what this prints.
set pagination off
set confirm off
set debuginfod enabled off
set print frame-arguments none
handle SIGSEGV nostop noprint pass
source share/ringfence-gdb.py
break ask
run
python gdb.execute("ringfence-symbols " + os.environ["MODULES"])
break call_host_add
continue
echo == in the domain\n
bt
info args
break host_add
continue
continue
echo == in the host, called by the domain\n
bt
finish
echo == back\n
continue
