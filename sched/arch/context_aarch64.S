// Context switch for AAPCS64.
//
// A saved context is a stack pointer to this frame (offsets as in context.h):
//
//      sp + 232  (padding: sp is always a multiple of 16)
//      sp + 224  fpcr
//      sp +  96  q8 .. q15
//      sp +  88  x30                 resume address
//      sp +  80  x29                 frame pointer
//      sp +  16  x21 .. x28
//      sp +   8  x20                 new context: entry function
//      sp +   0  x19                 new context: argument
//
// A called function need only keep the low halves of v8-v15. The switch is not called but jumped to from an
// asm statement, and of that a compiler knows registers that change and registers that do not: these do not.
// x18 is one more scratch register on Linux; context.h refuses the builds in which it is not.
//
// Guarded code (BTI): where code is built with -mbranch-protection=standard, the loader may have the
// processor check that indirect jumps arrive at a landing pad. One object without the mark below turns that
// off for the whole program, so this one has it, and pads at all places an indirect jump can reach: here, at
// the resume address (context.h), and, because linkers reach distant functions by an indirect jump, at every
// function. Pads do nothing where nobody checks. They are written as hints, which every assembler knows:
//      hint #34 = bti c    reached by calls, and by jumps through x16 or x17
//      hint #36 = bti j    reached by jumps
// Return addresses (PAC) stay signed while they are parked: they lie in their own frames, and the stack
// pointer they are signed with is the same again when they are used. The resume address is no return address
// and is not signed; therefore the mark does not claim PAC.
//
// `br` and not `ret`: see context_x86_64.S.

#include <tuza/sched/arch/function.inc>

        .text

        // From the caller's registers and stack to those of the context in x1. Changes x9 and x10 besides.
        .macro  SWITCH
        .cfi_remember_state
        sub     sp, sp, #240
        .cfi_adjust_cfa_offset 240
        stp     x19, x20, [sp, #0]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     q8, q9, [sp, #96]
        stp     q10, q11, [sp, #128]
        stp     q12, q13, [sp, #160]
        stp     q14, q15, [sp, #192]
        mrs     x9, fpcr
        str     x9, [sp, #224]
        .cfi_rel_offset x19, 0
        .cfi_rel_offset x20, 8
        .cfi_rel_offset x21, 16
        .cfi_rel_offset x22, 24
        .cfi_rel_offset x23, 32
        .cfi_rel_offset x24, 40
        .cfi_rel_offset x25, 48
        .cfi_rel_offset x26, 56
        .cfi_rel_offset x27, 64
        .cfi_rel_offset x28, 72
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        .cfi_rel_offset d8, 96
        .cfi_rel_offset d9, 112
        .cfi_rel_offset d10, 128
        .cfi_rel_offset d11, 144
        .cfi_rel_offset d12, 160
        .cfi_rel_offset d13, 176
        .cfi_rel_offset d14, 192
        .cfi_rel_offset d15, 208
        mov     x10, sp
        str     x10, [x0]
        mov     sp, x1                  // from here on it is the other goroutine's stack, with
        ldr     x10, [sp, #224]         // a frame of the same shape: the unwind rules stay true
        cmp     x9, x10
        b.eq    1f                      // a write to fpcr may wait for everything before it, as the
        msr     fpcr, x10               // kernel's fpsimd_restore_fpcr says; it hardly ever differs
1:      ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     q8, q9, [sp, #96]
        ldp     q10, q11, [sp, #128]
        ldp     q12, q13, [sp, #160]
        ldp     q14, q15, [sp, #192]
        add     sp, sp, #240
        .cfi_restore_state
        .endm

        FUNCTION tuza_context_switch, 5 // x0 = Context* save, x1 = Context load
        hint    #34
        SWITCH
        br      x30
        END_FUNCTION tuza_context_switch

        FUNCTION tuza_context_call, 5   // x0 = save, x1 = load, x2 = function, x3 = argument
        hint    #34
        stp     x29, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        bl      leave_for_call          // compilers put no pad behind a call, so the switch that comes back
        hint    #36                     // arrives here
        ldp     x29, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        .cfi_same_value x29
        .cfi_same_value x30
        ret
        END_FUNCTION tuza_context_call

#if defined(__ELF__)
        .type   leave_for_call, %function
#endif
leave_for_call:
        .cfi_startproc
        SWITCH
        mov     x0, x3
        mov     x16, x2                 // through x16: a function's pad is for calls
        br      x16                     // x30, the resume address, looks like the return address of a call
        END_FUNCTION leave_for_call

        FUNCTION tuza_context_entry, 4
        .cfi_undefined x30              // the end of every back trace
        hint    #36
        mov     x29, xzr
        mov     x0, x19
        blr     x20
        brk     #1
        END_FUNCTION tuza_context_entry

#if defined(__ELF__)
        .section .note.gnu.property, "a", %note
        .p2align 3
        .word   4                       // bytes of the name
        .word   16                      // bytes of the description
        .word   5                       // NT_GNU_PROPERTY_TYPE_0
        .asciz  "GNU"
        .word   0xc0000000              // GNU_PROPERTY_AARCH64_FEATURE_1_AND
        .word   4                       // bytes of the property
        .word   1                       // GNU_PROPERTY_AARCH64_FEATURE_1_BTI
        .word   0                       // padding to 8

        .section .note.GNU-stack, "", %progbits
#endif
