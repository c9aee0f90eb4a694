#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Standard output could not be written.
struct BrokenOutput: Error, Equatable {
  /// What the system said.
  let error: SystemError

  /// Whether nobody reads the output any more.
  var isReaderGone: Bool { error.code == EPIPE }
}
