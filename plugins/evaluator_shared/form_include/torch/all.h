// See torch/extension.h beside this file.
#pragma once
#include <torch/extension.h>
