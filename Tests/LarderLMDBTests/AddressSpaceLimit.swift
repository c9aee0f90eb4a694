#if LMDB
import Foundation

/// The limit of this process's address space.
enum AddressSpaceLimit {
  struct Unknown: Error {}

  /// Limits the address space to its current size plus `size` bytes.
  static func set(toFurther size: Int) throws {
    #if os(Linux)
    let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ").first
    guard let pages, let pages = Int(pages) else { throw Unknown() }
    var limit = rlimit()
    limit.rlim_cur = rlim_t(pages * Int(sysconf(Int32(_SC_PAGESIZE))) + size)
    limit.rlim_max = limit.rlim_cur
    guard setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0 else { throw Unknown() }
    #else
    throw Unknown()
    #endif
  }
}
#endif
