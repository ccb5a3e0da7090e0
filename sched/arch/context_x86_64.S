// Context switch for the System V AMD64 ABI.
//
// A saved context is a stack pointer to this frame (offsets as in context.h):
//
//      sp + 56   resume address      <- top of the stack as the caller of the switch left it
//      sp + 48   rbp
//      sp + 40   rbx
//      sp + 32   r15
//      sp + 24   r14
//      sp + 16   r13                 new context: entry function
//      sp +  8   r12                 new context: argument
//      sp +  4   x87 control word (2 bytes)
//      sp +  0   mxcsr (4 bytes)
//
// The resume address is popped and jumped to instead of returned to: the return would be predicted by the
// return stack of the goroutine that is being left and be wrong every time (11.7 ns instead of 2.5). The
// other half of that is in context.h: the switch is entered by a jump as well.
// The control words are always reloaded: comparing them first costs more than it saves, because the
// comparison waits for the store that has just been made (5.2 ns instead of 4.1).

#include <tuza/sched/arch/function.inc>

        .text

        FUNCTION tuza_context_switch, 5 // rdi = Context* save, rsi = Context load
        leaq    -56(%rsp), %rsp
        .cfi_adjust_cfa_offset 56
        stmxcsr 0(%rsp)
        fnstcw  4(%rsp)
        movq    %r12, 8(%rsp)
        movq    %r13, 16(%rsp)
        movq    %r14, 24(%rsp)
        movq    %r15, 32(%rsp)
        movq    %rbx, 40(%rsp)
        movq    %rbp, 48(%rsp)
        .cfi_rel_offset %r12, 8
        .cfi_rel_offset %r13, 16
        .cfi_rel_offset %r14, 24
        .cfi_rel_offset %r15, 32
        .cfi_rel_offset %rbx, 40
        .cfi_rel_offset %rbp, 48
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp              // from here on it is the other goroutine's stack, with
        ldmxcsr 0(%rsp)                 // a frame of the same shape: the unwind rules stay true
        fldcw   4(%rsp)
        movq    8(%rsp), %r12
        movq    16(%rsp), %r13
        movq    24(%rsp), %r14
        movq    32(%rsp), %r15
        movq    40(%rsp), %rbx
        movq    48(%rsp), %rbp
        .cfi_same_value %r12
        .cfi_same_value %r13
        .cfi_same_value %r14
        .cfi_same_value %r15
        .cfi_same_value %rbx
        .cfi_same_value %rbp
        leaq    56(%rsp), %rsp
        .cfi_adjust_cfa_offset -56
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rdx
        jmpq    *%rdx
        END_FUNCTION tuza_context_switch

        FUNCTION tuza_context_call, 5   // rdi = save, rsi = load, rdx = function, rcx = argument
        leaq    -56(%rsp), %rsp
        .cfi_adjust_cfa_offset 56
        stmxcsr 0(%rsp)
        fnstcw  4(%rsp)
        movq    %r12, 8(%rsp)
        movq    %r13, 16(%rsp)
        movq    %r14, 24(%rsp)
        movq    %r15, 32(%rsp)
        movq    %rbx, 40(%rsp)
        movq    %rbp, 48(%rsp)
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        movq    8(%rsp), %r12
        movq    16(%rsp), %r13
        movq    24(%rsp), %r14
        movq    32(%rsp), %r15
        movq    40(%rsp), %rbx
        movq    48(%rsp), %rbp
        leaq    56(%rsp), %rsp          // the resume address now stands where a call would have put it
        .cfi_adjust_cfa_offset -56
        movq    %rcx, %rdi
        jmpq    *%rdx
        END_FUNCTION tuza_context_call

        FUNCTION tuza_context_entry, 4
        .cfi_undefined %rip             // the end of every back trace
        xorl    %ebp, %ebp
        movq    %r12, %rdi
        callq   *%r13
        ud2
        END_FUNCTION tuza_context_entry

#if defined(__ELF__)
        .section .note.GNU-stack, "", @progbits
#endif
