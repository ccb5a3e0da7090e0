// Context switch for AAPCS64.
//
// A saved context is a stack pointer to this frame (offsets as in context.h):
//
//      sp + 168  (padding)
//      sp + 160  fpcr
//      sp +  96  d8 .. d15           the low halves of v8-v15 are callee-saved
//      sp +  88  x30                 resume address
//      sp +  80  x29                 frame pointer
//      sp +  16  x21 .. x28
//      sp +   8  x20                 new context: entry function
//      sp +   0  x19                 new context: argument
//
// `br` and not `ret`: see context_x86_64.S.

        .text

        .macro  SAVE
        sub     sp, sp, #176
        .cfi_adjust_cfa_offset 176
        stp     x19, x20, [sp, #0]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        str     x9, [sp, #160]
        .cfi_rel_offset x19, 0
        .cfi_rel_offset x20, 8
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        .endm

        .macro  RESTORE
        ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldr     x9, [sp, #160]
        msr     fpcr, x9
        add     sp, sp, #176
        .cfi_adjust_cfa_offset -176
        .cfi_same_value x19
        .cfi_same_value x20
        .cfi_same_value x29
        .cfi_same_value x30
        .endm

        .globl  tuza_context_switch
        .hidden tuza_context_switch
        .type   tuza_context_switch, %function
        .p2align 5
tuza_context_switch:                    // x0 = Context* save, x1 = Context load
        .cfi_startproc
        SAVE
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        RESTORE
        br      x30
        .cfi_endproc
        .size   tuza_context_switch, . - tuza_context_switch

        .globl  tuza_context_call
        .hidden tuza_context_call
        .type   tuza_context_call, %function
        .p2align 5
tuza_context_call:                      // x0 = save, x1 = load, x2 = function, x3 = argument
        .cfi_startproc
        SAVE
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        RESTORE
        mov     x0, x3
        br      x2                      // x30, the resume address, looks like the return address of a call
        .cfi_endproc
        .size   tuza_context_call, . - tuza_context_call

        .globl  tuza_context_entry
        .hidden tuza_context_entry
        .type   tuza_context_entry, %function
        .p2align 4
tuza_context_entry:
        .cfi_startproc
        .cfi_undefined x30              // the end of every back trace
        mov     x29, xzr
        mov     x0, x19
        blr     x20
        brk     #1
        .cfi_endproc
        .size   tuza_context_entry, . - tuza_context_entry

        .section .note.GNU-stack, "", %progbits
