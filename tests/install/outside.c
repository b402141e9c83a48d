/* SPDX-License-Identifier: MIT */
/* outside.c - a program outside the tree: builds against the installed headers and umd.pc, runs one kernel. */
#include <stdio.h>

#include <umd/umd.h>

struct scale_args { umdDevicePtr x; float a; uint32_t n; };

static int check(umdStatus st, const char *what)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    char text[4096];

    if (!umdFailed(st))
        return 0;
    if (umdGetLastErrorDetail(&d) == UMD_SUCCESS)
        umdErrorDetailFormat(&d, text, sizeof(text));
    else
        text[0] = '\0';
    fprintf(stderr, "%s: %s\n%s\n", what, umdStatusName(st), text);
    return 1;
}

int main(int argc, char **argv)
{
    enum { N = 1000 };
    static float x[N];
    umdDevice dev;
    umdContext ctx;
    umdStream s;
    umdModule mod;
    umdKernel k;
    umdDevicePtr p;

    if (argc != 2)
        return 1;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    if (check(umdInit(NULL), "umdInit") || check(umdDeviceGet(0, &dev), "umdDeviceGet") ||
        check(umdContextCreate(dev, &ctx), "umdContextCreate") ||
        check(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s), "umdStreamCreate") ||
        check(umdModuleLoadFile(ctx, argv[1], &mod), "umdModuleLoadFile") ||
        check(umdModuleGetKernel(mod, "scale", &k), "umdModuleGetKernel") ||
        check(umdMemAlloc(ctx, sizeof(x), 0, 0, &p), "umdMemAlloc") ||
        check(umdMemcpyHtoD(s, p, x, sizeof(x)), "umdMemcpyHtoD"))
        return 2;
    struct scale_args args = { .x = p, .a = 2.0f, .n = N };
    umdLaunchDesc launch = {
        .size_B = sizeof(launch), .grid = { (N + 127) / 128, 1, 1 }, .block = { 128, 1, 1 }, .args = &args, .args_B = sizeof(args),
    };
    if (check(umdLaunchKernel(s, k, &launch), "umdLaunchKernel") || check(umdMemcpyDtoH(s, x, p, sizeof(x)), "umdMemcpyDtoH"))
        return 3;
    for (int i = 0; i < N; i++)
        if (x[i] != 2.0f * (float)i) {
            fprintf(stderr, "x[%d] is %g\n", i, (double)x[i]);
            return 4;
        }
    return check(umdContextDestroy(ctx), "umdContextDestroy") || check(umdShutdown(), "umdShutdown") ? 3 : 0;
}
