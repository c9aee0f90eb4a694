#if LMDB
/// Which file a path leads to, whatever it is called: the same for every symbolic and hard link.
struct FileIdentity: Hashable {
  let device: UInt64
  let inode: UInt64
}
#endif
