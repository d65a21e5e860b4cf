# find_package(onnxruntime): ort-abi in place of ONNX Runtime, as the target onnxruntime::onnxruntime.
if(NOT TARGET onnxruntime::onnxruntime)
  get_filename_component(_onnxruntime_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(onnxruntime::onnxruntime SHARED IMPORTED)
  set_target_properties(onnxruntime::onnxruntime PROPERTIES
    IMPORTED_LOCATION "${_onnxruntime_prefix}/lib/libonnxruntime.so.1"
    IMPORTED_SONAME "libonnxruntime.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_onnxruntime_prefix}/include")
  unset(_onnxruntime_prefix)
endif()
