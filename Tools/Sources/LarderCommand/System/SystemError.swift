#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A call to the system failed.
struct SystemError: Error, Equatable {
  /// The `errno`.
  let code: Int32

  /// What the last call to the system left as `errno`.
  static var last: SystemError { SystemError(code: errno) }

  /// Whether the system refuses access.
  var isRefusal: Bool { code == EACCES || code == EPERM }

  /// What went wrong, in the system's words.
  var message: String {
    strerror(code).map { String(cString: $0) } ?? "error \(code)"
  }
}
