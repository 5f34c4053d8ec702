"""LLVM IR for the innermost loops of scoring; README.md beside this file explains it."""
