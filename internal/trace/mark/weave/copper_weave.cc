// SPDX-License-Identifier: BSD-3-Clause
// A clang plugin that instruments functions that have PerfFlowAspect's annotation,
//
//     __attribute__((annotate("@critical_path(pointcut='around', scope='s', flow='in')")))
//
// with calls of perfflow_weave_before at the start of the function and of perfflow_weave_after
// wherever it exits: at a return, an exception, or a call that does not return, such as exit and
// pthread_exit (copper/perfflow.h). A longjmp out of the function leaves its region open.
//
// It must be built for the LLVM version of the compiler that loads it:
//
//     c++ -shared -fPIC -fno-rtti $(llvm-config --cxxflags) -o copper-weave.so copper_weave.cc
#include <map>
#include <set>
#include <string>

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Transforms/Utils/EscapeEnumerator.h"

namespace {

// The contents of an annotation.
struct pointcut {
	std::string point = "around", scope = "NA", flow = "NA";
	bool begins = true, ends = true, async = false;
};

void skip(const std::string &text, size_t &at, const char *what)
{
	at = std::min(text.find_first_not_of(what, at), text.size());
}

// Reads a value in single or double quotes; returns false if there is none.
bool read_quoted(const std::string &text, size_t &at, std::string &out)
{
	if (at >= text.size() || (text[at] != '\'' && text[at] != '"'))
		return false;
	size_t end = text.find(text[at], at + 1);
	if (end == std::string::npos)
		return false;
	out = text.substr(at + 1, end - at - 1);
	at = end + 1;
	return true;
}

// Reads the arguments between the parentheses: key='value', separated by commas.
bool read_arguments(const std::string &text, std::map<std::string, std::string> &out)
{
	size_t at = 0;

	for (skip(text, at, " \t"); at < text.size(); skip(text, at, " \t")) {
		size_t end = text.find_first_of(" \t=", at);
		std::string key = text.substr(at, end == std::string::npos ? end : end - at), value;

		if (end == std::string::npos || (key != "pointcut" && key != "scope" && key != "flow"))
			return false;
		at = end;
		skip(text, at, " \t=");
		if (!read_quoted(text, at, value))
			return false;
		out[key] = value;
		skip(text, at, " \t");
		if (at < text.size() && text[at++] != ',')
			return false;
	}
	return true;
}

bool read_annotation(const std::string &text, pointcut &out)
{
	std::map<std::string, std::string> given;
	size_t open = text.find('('), close = text.rfind(')');

	if (open == std::string::npos || close == std::string::npos || close < open ||
		!read_arguments(text.substr(open + 1, close - open - 1), given))
		return false;
	if (given.count("pointcut"))
		out.point = given["pointcut"];
	if (given.count("scope"))
		out.scope = given["scope"];
	if (given.count("flow"))
		out.flow = given["flow"];
	std::string where = out.point.substr(0, out.point.find('_'));
	out.async = out.point == where + "_async";
	out.begins = where != "after";
	out.ends = where != "before";
	return (out.async || out.point == where) &&
	       (where == "around" || where == "before" || where == "after");
}

class weaver {
public:
	explicit weaver(llvm::Module &module) : m(module), context(module.getContext()) {}

	bool weave()
	{
		llvm::GlobalVariable *list = m.getNamedGlobal("llvm.global.annotations");
		auto *all = list && list->hasInitializer()
				    ? llvm::dyn_cast<llvm::ConstantArray>(list->getInitializer())
				    : nullptr;
		bool changed = false;

		for (unsigned i = 0; all && i < all->getNumOperands(); i++) {
			auto *one = llvm::dyn_cast<llvm::ConstantStruct>(all->getOperand(i));
			auto *f = one ? llvm::dyn_cast<llvm::Function>(
						one->getOperand(0)->stripPointerCasts())
				      : nullptr;

			if (f && !f->isDeclaration() && !f->hasFnAttribute(llvm::Attribute::Naked))
				changed |= weave_function(*f, text_of(one->getOperand(1)));
		}
		return changed;
	}

private:
	llvm::Module &m;
	llvm::LLVMContext &context;
	std::set<std::pair<llvm::Function *, std::string>> seen;

	static std::string text_of(llvm::Value *v)
	{
		auto *g = llvm::dyn_cast<llvm::GlobalVariable>(v->stripPointerCasts());
		auto *data = g && g->hasInitializer()
				     ? llvm::dyn_cast<llvm::ConstantDataArray>(g->getInitializer())
				     : nullptr;

		return data && data->isCString() ? data->getAsCString().str() : "";
	}

	llvm::Constant *literal(const std::string &text)
	{
		llvm::Constant *data = llvm::ConstantDataArray::getString(context, text);
		auto *g = new llvm::GlobalVariable(m, data->getType(), true,
			llvm::GlobalValue::PrivateLinkage, data, "copper.weave");

		g->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
		return llvm::ConstantExpr::getPointerCast(
			g, llvm::PointerType::getUnqual(llvm::Type::getInt8Ty(context)));
	}

	void call(const char *what, llvm::IRBuilder<> &builder, llvm::Function &f, const pointcut &p,
		const std::string &flow)
	{
		llvm::Type *text = llvm::PointerType::getUnqual(llvm::Type::getInt8Ty(context));
		llvm::Type *number = llvm::Type::getInt32Ty(context);
		llvm::FunctionCallee callee = m.getOrInsertFunction(what,
			llvm::FunctionType::get(llvm::Type::getVoidTy(context),
				{number, text, text, text, text}, false));

		// In a function with debug information, a call that may be inlined needs a line.
		if (llvm::DISubprogram *lines = f.getSubprogram())
			if (!builder.getCurrentDebugLocation())
				builder.SetCurrentDebugLocation(llvm::DILocation::get(
					context, lines->getScopeLine(), 0, lines));
		llvm::CallInst *made = builder.CreateCall(callee,
			{llvm::ConstantInt::get(number, p.async), literal(m.getName().str()),
				literal(llvm::demangle(f.getName().str())), literal(p.scope),
				literal(flow)});
		made->setDoesNotThrow();
	}

	// Returns a call that ends both the block and the function and cannot unwind, or null if
	// there is none. In C, no call unwinds.
	static llvm::CallInst *last_call(llvm::BasicBlock &block)
	{
		llvm::Instruction *last = block.getTerminator();
		auto *before = last && llvm::isa<llvm::UnreachableInst>(last)
				       ? llvm::dyn_cast_or_null<llvm::CallInst>(last->getPrevNode())
				       : nullptr;

		return before && before->doesNotReturn() &&
				       (before->doesNotThrow() || block.getParent()->doesNotThrow())
			       ? before
			       : nullptr;
	}

	void weave_ends(llvm::Function &f, const pointcut &p)
	{
		// A flow in or out belongs to only one side of the function.
		bool one_way = p.point == "around" && (p.flow == "in" || p.flow == "out");
		std::string flow = one_way ? "NA" : p.flow;

		for (llvm::BasicBlock &block : f)
			if (llvm::CallInst *last = last_call(block)) {
				llvm::IRBuilder<> builder(last);

				call("perfflow_weave_after", builder, f, p, flow);
			}
		llvm::EscapeEnumerator exits(f, "copper_weave");
		while (llvm::IRBuilder<> *builder = exits.Next())
			call("perfflow_weave_after", *builder, f, p, flow);
	}

	bool weave_function(llvm::Function &f, const std::string &annotation)
	{
		pointcut p;

		if (annotation.compare(0, 14, "@critical_path") != 0 ||
			!seen.insert({&f, annotation}).second)
			return false;
		if (!read_annotation(annotation, p)) {
			llvm::errs() << "copper-weave: " << m.getName() << ": "
				     << llvm::demangle(f.getName().str())
				     << " is not marked: " << annotation << " is not understood\n";
			return false;
		}
		if (p.ends)
			weave_ends(f, p);
		if (p.begins) {
			llvm::IRBuilder<> builder(&*f.getEntryBlock().getFirstInsertionPt());

			call("perfflow_weave_before", builder, f, p, p.flow);
		}
		return true;
	}
};

struct weave_pass : llvm::PassInfoMixin<weave_pass> {
	llvm::PreservedAnalyses run(llvm::Module &m, llvm::ModuleAnalysisManager &)
	{
		return weaver(m).weave() ? llvm::PreservedAnalyses::none()
					 : llvm::PreservedAnalyses::all();
	}
	static bool isRequired()
	{
		return true;
	}
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK llvm::PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "copper-weave", "1", [](llvm::PassBuilder &builder) {
			builder.registerPipelineStartEPCallback(
				[](llvm::ModulePassManager &passes, auto) {
					passes.addPass(weave_pass());
				});
		}};
}
