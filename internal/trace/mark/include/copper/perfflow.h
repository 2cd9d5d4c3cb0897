/* SPDX-License-Identifier: BSD-3-Clause */
/* copper/perfflow.h: the runtime for C and C++ functions instrumented by a clang plugin. Annotate
 * functions as for PerfFlowAspect:
 *
 *     __attribute__((annotate("@critical_path(pointcut='around')"))) void solve(void);
 *
 * The plugin is Copper's (share/copper/weave) or PerfFlowAspect's own, whose runtime library this
 * header replaces. Source files need no changes:
 *
 *     clang -include copper/perfflow.h -fpass-plugin=copper-weave.so solve.c -pthread
 *
 * Events have the same format and go to the same file as those of copper/mark.h. Each region is two
 * events, even if log-event is compact, and cpu-mem-usage is ignored, because the plugin's calls do
 * not pair begins with ends. */
#ifndef COPPER_PERFFLOW_H
#define COPPER_PERFFLOW_H

#include <copper/mark.h>
#ifdef __cplusplus
#include <cxxabi.h>
#endif

#ifdef COPPER_MARK_PRIVATE
#error "copper/perfflow.h: what is woven calls one runtime in the whole program; COPPER_MARK_PRIVATE makes several"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __cplusplus
/* Weak: present only if other parts of the program are C++. */
extern char *copper_perfflow_i_demangler(const char *name, char *buffer, size_t *size,
	int *status) __asm__("__cxa_demangle") __attribute__((weak));
#endif

/* Later plugin versions also pass the pointcut, in a register that these functions ignore. */
void perfflow_weave_before(int is_async, const char *module, const char *function,
	const char *scope, const char *flow);
void perfflow_weave_after(int is_async, const char *module, const char *function, const char *scope,
	const char *flow);

#ifdef __cplusplus
}
#endif

/* Returns the demangled name, which the caller frees, or NULL if the name is not mangled. */
COPPER_MARK_I_COLD char *copper_perfflow_i_demangle(const char *name)
{
	int status;

	if (name[0] != '_' || name[1] != 'Z')
		return NULL;
#ifdef __cplusplus
	return abi::__cxa_demangle(name, NULL, NULL, &status);
#else
	return copper_perfflow_i_demangler ? copper_perfflow_i_demangler(name, NULL, NULL, &status)
					   : NULL;
#endif
}

COPPER_MARK_I_COLD void copper_perfflow_i_event(
	char phase, const char *module, const char *function, const char *scope)
{
	char *plain = copper_perfflow_i_demangle(function);
	struct copper_mark_i_event e;
	const char *name;
	size_t len;

	name = copper_mark_i_function(plain ? plain : function, &len);
	copper_mark_i_init(&e, phase, name, len, module);
	if (phase == 'b' || phase == 'e') {
		/* Without a scope, all calls of a function share one id, as in PerfFlowAspect. */
		e.with_id = 1;
		e.id = 123;
		e.scope = strcmp(scope, "NA") != 0 ? scope : NULL;
	}
	copper_mark_i_put(&e);
	free(plain);
}

/* flow is "in", "out", or both in sequence ("inout", "outin"). */
COPPER_MARK_I_COLD void copper_perfflow_i_flow(const char *flow, int is_end)
{
	int in = !strcmp(flow, "in") || !strcmp(flow, is_end ? "outin" : "inout");
	int out = !strcmp(flow, "out") || !strcmp(flow, is_end ? "inout" : "outin");

	if (in || out)
		copper_mark_event(in ? 'f' : 's', "flow", "flow", NULL, 100);
}

#ifdef __cplusplus
extern "C" {
#endif

COPPER_MARK_I_SHARED void perfflow_weave_before(
	int is_async, const char *module, const char *function, const char *scope, const char *flow)
{
	if (!copper_mark_enabled())
		return;
	copper_perfflow_i_event(is_async ? 'b' : 'B', module, function, scope);
	if (!is_async)
		copper_perfflow_i_flow(flow, 0);
}

COPPER_MARK_I_SHARED void perfflow_weave_after(
	int is_async, const char *module, const char *function, const char *scope, const char *flow)
{
	if (!copper_mark_enabled())
		return;
	if (!is_async)
		copper_perfflow_i_flow(flow, 1);
	copper_perfflow_i_event(is_async ? 'e' : 'E', module, function, scope);
}

#ifdef __cplusplus
}
#endif
#endif
