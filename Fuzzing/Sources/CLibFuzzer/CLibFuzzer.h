// The entrance of libFuzzer for programs with a `main` of their own.
int LLVMFuzzerRunDriver(
    int *argc, char ***argv, int (*test_one_input)(const unsigned char *start, unsigned long count));
