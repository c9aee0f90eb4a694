#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What a call to the system failed with.
struct SystemError: Error {
  /// The value of `errno`.
  let code: Int32

  /// Takes the code that the last call left in `errno`; make it directly after the call.
  static func current() -> SystemError {
    SystemError(code: errno)
  }
}

extension SystemError: CustomStringConvertible {
  /// The system's own words.
  var description: String {
    String(cString: strerror(code))
  }
}
