# tuza_sanitizer_flavour(<variable> <value of TUZA_SANITIZE>): the name of the libraries that fit. Empty: those without a
# sanitizer. Included by the build and by the installed package. Code with UndefinedBehaviorSanitizer may be mixed with
# other code, so it has no name beside one of the others.
function(tuza_sanitizer_flavour variable sanitizers)
  if(sanitizers MATCHES "(^|,)(address|thread)(,|$)")
    set(${variable} ${CMAKE_MATCH_2} PARENT_SCOPE)
  else()
    string(REPLACE "," "-" name "${sanitizers}")
    set(${variable} "${name}" PARENT_SCOPE)
  endif()
endfunction()
