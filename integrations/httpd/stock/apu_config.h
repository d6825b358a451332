/* apu_config.h - the same for APR-util. */
#define CRYPT_R_STRUCT_CRYPT_DATA 1
