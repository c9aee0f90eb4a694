#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What a call to the system failed with.
struct SystemError: Error, Equatable {
  /// The value of `errno`.
  let code: Int32

  /// Takes the code that the last call left in `errno`; make it directly after the call.
  static func current() -> SystemError {
    SystemError(code: errno)
  }

  /// Whether what was asked for is not there, or is not what it was a moment ago.
  var meansGone: Bool {
    code == ENOENT || code == ENOTDIR || code == ELOOP
  }
}

extension SystemError: CustomStringConvertible {
  /// The system's own words.
  var description: String {
    String(cString: strerror(code))
  }
}
