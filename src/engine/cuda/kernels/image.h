/* image.h - the kernels: compiled images in this module, loaded into a context. */
#ifndef COHI_ENGINE_CUDA_KERNELS_IMAGE_H
#define COHI_ENGINE_CUDA_KERNELS_IMAGE_H

/* One file of kernels/, for all cards that it was compiled for. The last row has no name. */
typedef struct cohi_cuda_image_file {
    const char *name;
    const unsigned char *bytes;
} cohi_cuda_image_file;

extern const cohi_cuda_image_file cohi_cuda_image_files[];

#endif
