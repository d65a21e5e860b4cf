/* onnxruntime_c_api.h: what C programs include to use onnxruntime. The declarations are those of ort_abi.h;
 * here are the macros that programs and plugins use around them. */
#ifndef ORT_ABI_ONNXRUNTIME_C_API_H
#define ORT_ABI_ONNXRUNTIME_C_API_H

#include "ort_abi.h"

#ifndef ORT_EXPORT
#define ORT_EXPORT ORT_ABI_EXPORT
#endif

/* A literal as a path. */
#ifdef _WIN32
#define ORT_TSTR(text) L##text
#else
#define ORT_TSTR(text) text
#endif

#ifdef __cplusplus
#define NO_EXCEPTION noexcept
#else
#define NO_EXCEPTION
#endif

/* Declarations and definitions of functions with the host's calling convention. */
#define ORT_API(type, name, ...)       type ORT_API_CALL name(__VA_ARGS__) NO_EXCEPTION
#define ORT_API_STATUS(name, ...)      OrtStatus* ORT_API_CALL name(__VA_ARGS__) NO_EXCEPTION
#define ORT_API_STATUS_IMPL(name, ...) OrtStatus* ORT_API_CALL name(__VA_ARGS__) NO_EXCEPTION
#define ORT_API2_STATUS(name, ...)     OrtStatus*(ORT_API_CALL * name)(__VA_ARGS__)

/* Notes on parameters, which Microsoft's compilers have of their own. */
#ifndef _WIN32
#define _In_
#define _In_z_
#define _In_opt_
#define _In_opt_z_
#define _In_reads_(count)
#define _In_reads_opt_(count)
#define _Inout_
#define _Inout_opt_
#define _Inout_updates_all_(count)
#define _Out_
#define _Out_opt_
#define _Out_writes_(count)
#define _Out_writes_opt_(count)
#define _Out_writes_all_(count)
#define _Out_writes_bytes_all_(count)
#define _Outptr_
#define _Outptr_opt_
#define _Outptr_result_maybenull_
#define _Outptr_opt_result_maybenull_
#define _Outptr_result_buffer_(count)
#define _Outptr_result_buffer_maybenull_(count)
#define _Frees_ptr_opt_
#define _Ret_maybenull_
#define _Ret_notnull_
#define _Check_return_
#define _Success_(condition)
#endif

#endif /* ORT_ABI_ONNXRUNTIME_C_API_H */
