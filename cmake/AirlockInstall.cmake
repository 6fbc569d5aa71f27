# `cmake --install` and the .deb. airlock looks for airlock-routerd in ../libexec/airlock; routerd
# looks for the others and the libraries in its own folder. Without a
# configuration file airlock runs on its defaults, so the package has none: it ships an example.
set(AIRLOCK_LIBEXEC_DIR ${CMAKE_INSTALL_LIBEXECDIR}/airlock)
install(TARGETS airlock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS airlock-routerd airlock-init airlock-stub airlock-files airlock-shell airlock-api RUNTIME DESTINATION ${AIRLOCK_LIBEXEC_DIR})
install(TARGETS airlock-preload airlock-bind airlock-shell-loadable airlock-shell-receiver LIBRARY DESTINATION ${AIRLOCK_LIBEXEC_DIR})

# routerd finds them at ../../share/airlock/profiles.
install(DIRECTORY profiles/ DESTINATION ${CMAKE_INSTALL_DATADIR}/airlock/profiles
  FILES_MATCHING PATTERN "*.yaml")

set(AIRLOCK_EXAMPLES_DIR ${CMAKE_INSTALL_DATADIR}/doc/airlock/examples)
install(FILES docs/DEPLOYMENT.md docker/airlock.service DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/airlock)
install(FILES docs/airlock.example.yaml DESTINATION ${AIRLOCK_EXAMPLES_DIR} OPTIONAL)
install(DIRECTORY examples/agent DESTINATION ${AIRLOCK_EXAMPLES_DIR}
  USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE PATTERN node_modules EXCLUDE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME airlock)
set(CPACK_PACKAGE_VENDOR "Airlock")
set(CPACK_PACKAGE_CONTACT "Airlock maintainers <maintainers@airlock.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "execution contexts for AI agents and the programs they start")
set(CPACK_PACKAGE_DESCRIPTION
  "Airlock isolates execution contexts inside one Linux container or host. An AI
agent runs in the platform context with the platform's credentials; every child
it starts runs in the user context with the user's environment, shell and
process tree.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
