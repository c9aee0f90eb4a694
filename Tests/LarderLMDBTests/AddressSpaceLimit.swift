import Foundation

/// The address space of this process.
enum AddressSpaceLimit {
  struct Unknown: Error {}

  /// Lets the process have some bytes more than it has now.
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
