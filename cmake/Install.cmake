# What `cmake --install` and `cpack` take, in two parts: runtime (host, plugins, problems, configurations) and development
# (headers, CMake package, pkg-config). Nothing in it names a folder of this machine but libtorch's, which the policy and the
# trainers look for in lib/kgrpo/libtorch first. docs/building.md has the commands.
install(TARGETS kgrpo-host kgrpo-eval kgrpo-new-plugin kgrpo-optimize kgrpo-report kgrpo-serve kgrpo-validate RUNTIME DESTINATION bin COMPONENT runtime)
install(CODE "execute_process(COMMAND python3 \"${PROJECT_SOURCE_DIR}/scripts/make_man_page.py\" \"$<TARGET_FILE:kgrpo-host>\"
  \"${CMAKE_BINARY_DIR}/kgrpo-host.1\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)
install(FILES "${CMAKE_BINARY_DIR}/kgrpo-host.1" DESTINATION share/man/man1 COMPONENT runtime)

install(FILES scripts/completion/kgrpo-host.bash DESTINATION share/bash-completion/completions RENAME kgrpo-host COMPONENT runtime)
install(FILES scripts/completion/_kgrpo-host DESTINATION share/zsh/site-functions COMPONENT runtime)
install(FILES scripts/completion/kgrpo-host.fish DESTINATION share/fish/vendor_completions.d COMPONENT runtime)

kgrpo_shipped_plugins(plugins)
foreach(plugin IN LISTS plugins)
  set_target_properties(${plugin} PROPERTIES INSTALL_RPATH "$ORIGIN/libtorch/lib;${KGRPO_LIBTORCH}/lib")
  install(TARGETS ${plugin} LIBRARY DESTINATION lib/kgrpo COMPONENT runtime)
endforeach()
install(FILES "${CMAKE_BINARY_DIR}/lib/kgrpo/libtorch_cpu.so.hint" DESTINATION lib/kgrpo COMPONENT runtime OPTIONAL)
if(TARGET kgrpo_gpu)
  install(TARGETS kgrpo_gpu LIBRARY DESTINATION lib/kgrpo/policy_qwen COMPONENT runtime)
endif()

# The evaluators' helper programs.
set_target_properties(kgrpo_torch_worker PROPERTIES INSTALL_RPATH "$ORIGIN/../libtorch/lib;${KGRPO_LIBTORCH}/lib")
foreach(helper sandbox_launcher kgrpo_compile_worker kgrpo_trusted_worker kgrpo_draft_problem kgrpo_torch_worker kgrpo_sim_worker kgrpo_cuda_worker kgrpo_cuda_profile)
  if(TARGET ${helper})
    install(TARGETS ${helper} RUNTIME DESTINATION lib/kgrpo/evaluator COMPONENT runtime)
  endif()
endforeach()
install(TARGETS kgrpo_sim_cudart LIBRARY DESTINATION lib/kgrpo/evaluator COMPONENT runtime)
install(DIRECTORY plugins/judge/compile/form_include plugins/judge/compile/host_include plugins/judge/compile/host_include_std plugins/judge/compile/triton plugins/interpreter/devices
  DESTINATION lib/kgrpo/evaluator COMPONENT runtime)
install(DIRECTORY scripts/import_kernelbench DESTINATION lib/kgrpo COMPONENT runtime PATTERN __pycache__ EXCLUDE)
install(DIRECTORY python DESTINATION share/kgrpo COMPONENT runtime PATTERN __pycache__ EXCLUDE)

install(DIRECTORY problems configs DESTINATION share/kgrpo COMPONENT runtime)
install(DIRECTORY docs notes DESTINATION share/doc/kgrpo COMPONENT runtime)
install(FILES README.md LICENSE NOTICE DESTINATION share/doc/kgrpo COMPONENT runtime)

install(DIRECTORY core/abi/kgrpo core/sdk/kgrpo core/support/kgrpo DESTINATION include COMPONENT development FILES_MATCHING PATTERN "*.h")
install(TARGETS kgrpo_support ARCHIVE DESTINATION lib COMPONENT development)
install(DIRECTORY examples DESTINATION share/kgrpo COMPONENT development)
include(CMakePackageConfigHelpers)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/kgrpo-config-version.cmake" COMPATIBILITY SameMajorVersion)
install(FILES cmake/kgrpo-config.cmake cmake/plugin.map "${CMAKE_BINARY_DIR}/kgrpo-config-version.cmake"
  DESTINATION lib/cmake/kgrpo COMPONENT development)
configure_file(cmake/kgrpo.pc.in "${CMAKE_BINARY_DIR}/kgrpo.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/kgrpo.pc" DESTINATION lib/pkgconfig COMPONENT development)

# cpack -G DEB (kgrpo and kgrpo-dev) or TGZ, in the build folder.
set(CPACK_KGRPO_BUILD "${CMAKE_BINARY_DIR}")  # for DebianDepends.cmake
set(CPACK_PACKAGE_NAME kgrpo)
set(CPACK_PACKAGE_CONTACT "the authors of kgrpo <kgrpo@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains a small language model to make CUDA kernels faster")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME kgrpo)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME kgrpo-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "nlohmann-json3-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "kgrpo, cmake, ninja-build, libssl-dev, libsqlite3-dev, libkainjow-mustache-dev")
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/DebianDepends.cmake")
include(CPack)
