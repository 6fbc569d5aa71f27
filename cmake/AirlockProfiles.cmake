# profiles/*.yaml beside the programs of the build tree, so that they run from there.
file(GLOB profile_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiles/*.yaml)
set(copied_profiles)
foreach(file ${profile_files})
  get_filename_component(name ${file} NAME)
  set(copy ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/profiles/${name})
  add_custom_command(OUTPUT ${copy} DEPENDS ${file}
    COMMAND ${CMAKE_COMMAND} -E copy ${file} ${copy})
  list(APPEND copied_profiles ${copy})
endforeach()
add_custom_target(airlock-profiles ALL DEPENDS ${copied_profiles})
