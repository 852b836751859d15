# spmv_choice(NAME TEXT): a cache variable that is AUTO, ON or OFF; any other value is an error.
#
# SPDX-License-Identifier: BSD-3-Clause
function(spmv_choice name text)
  set(${name} AUTO CACHE STRING "${text}")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name} is \"${${name}}\"; it must be AUTO, ON or OFF")
  endif()
endfunction()
