# spmv_choice(NAME TEXT [VALUE]): a cache variable that is AUTO, ON, OFF or VALUE; any other value is
# an error.
#
# SPDX-License-Identifier: BSD-3-Clause
function(spmv_choice name text)
  set(${name} AUTO CACHE STRING "${text}")
  set(values AUTO ${ARGN} ON OFF)
  set_property(CACHE ${name} PROPERTY STRINGS ${values})
  if(NOT "${${name}}" IN_LIST values)
    list(JOIN values ", " values)
    string(REGEX REPLACE ", OFF$" " or OFF" values "${values}")
    message(FATAL_ERROR "${name} is \"${${name}}\"; it must be ${values}")
  endif()
endfunction()
