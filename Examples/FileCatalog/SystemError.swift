#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The error of a system call.
struct SystemError: Error, Equatable {
  /// The value of `errno`.
  let code: Int32

  /// Creates an error from `errno`.
  ///
  /// Call this directly after the system call.
  static func current() -> SystemError {
    SystemError(code: errno)
  }

  /// A Boolean value that indicates whether the item is missing, or no longer of the same kind.
  var meansGone: Bool {
    code == ENOENT || code == ENOTDIR || code == ELOOP
  }
}

extension SystemError: CustomStringConvertible {
  /// The message of the system.
  var description: String {
    String(cString: strerror(code))
  }
}
