/* A function for programs to call by name: it multiplies each number of a float array by three. Compiled against the header of XLA's foreign
 * function interface that jaxlib has in its package. A plug-in asks a handler first for which minor of that interface it was made: MINOR. */

#include "xla/ffi/api/c_api.h"

XLA_FFI_Error* serdes_times_three(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Extension_Base* extension = frame->extension_start;
  if (extension && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)extension)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = MINOR;
    metadata->traits = 0;
    return NULL;
  }
  const XLA_FFI_Buffer* from = frame->args.args[0];
  const XLA_FFI_Buffer* to = frame->rets.rets[0];
  int64_t count = 1;
  for (int64_t i = 0; i < from->rank; ++i) count *= from->dims[i];
  for (int64_t i = 0; i < count; ++i) ((float*)to->data)[i] = 3 * ((const float*)from->data)[i];
  return NULL;
}
