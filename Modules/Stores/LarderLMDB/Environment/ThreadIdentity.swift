#if LMDB
#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Tells threads apart while they run.
struct ThreadIdentity: Hashable {
  private let bits: UInt

  /// The calling thread.
  static var current: ThreadIdentity {
    #if canImport(Darwin)
    ThreadIdentity(bits: UInt(bitPattern: pthread_self()))
    #else
    ThreadIdentity(bits: UInt(pthread_self()))
    #endif
  }

  /// A number below a power of two, which spreads threads.
  ///
  /// It is an address whose low bits hardly differ between threads, so it is multiplied by the golden ratio, which puts
  /// neighbours far apart (Knuth, The Art of Computer Programming, volume 3, section 6.4).
  ///
  /// - Parameter bitCount: The logarithm of the power.
  func hash(bitCount: UInt) -> Int {
    Int(truncatingIfNeeded: (UInt64(bits) &* 0x9E37_79B9_7F4A_7C15) >> (64 - UInt64(bitCount)))
  }
}
#endif
