# shellcheck shell=bash
#
# For the scripts beside it, which name the top folder in `top`: sets `target_folder`, where
# cargo leaves what it makes. As cargo has it, a relative CARGO_TARGET_DIR is below the folder
# that a script is started in; scripts enter others, and so do those that they start.
target_folder=${CARGO_TARGET_DIR:-$top/target}
case $target_folder in
/*) ;;
*) target_folder=$PWD/$target_folder ;;
esac
export CARGO_TARGET_DIR=$target_folder
