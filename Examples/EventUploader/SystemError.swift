#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The error of a system call.
struct SystemError: Error {
  /// The value of `errno`.
  let code: Int32

  /// Creates an error from `errno`.
  ///
  /// Call this directly after the system call.
  static func current() -> SystemError {
    SystemError(code: errno)
  }
}

extension SystemError: CustomStringConvertible {
  /// The message of the system.
  var description: String {
    String(cString: strerror(code))
  }
}
