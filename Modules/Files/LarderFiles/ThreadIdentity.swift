import Foundation

/// The identity of a running thread.
///
/// The system may reuse it after the thread has ended.
///
/// ```swift
/// let owner = ThreadIdentity.current
/// let isOwner = { owner == ThreadIdentity.current }
/// ```
public struct ThreadIdentity: Hashable, Sendable {
  private let bits: UInt

  /// The calling thread.
  ///
  /// C declares `pthread_self` as a function without effects. The optimizer would therefore use the result of one call in
  /// all of an asynchronous function, also after it continues on another thread. It would find out that a property which
  /// only calls this function has no effects either, so it must not optimize the property at all.
  public static var current: ThreadIdentity {
    @inline(never) @_optimize(none) get {
      #if canImport(Darwin)
      ThreadIdentity(bits: UInt(bitPattern: pthread_self()))
      #else
      ThreadIdentity(bits: UInt(pthread_self()))
      #endif
    }
  }

  /// A hash that is spread evenly over threads, and not negative.
  ///
  /// The identity is an address, and the low bits of such addresses hardly differ between threads. Multiplying by the
  /// golden ratio spreads neighboring addresses (Knuth, The Art of Computer Programming, volume 3, section 6.4).
  public var hash: Int {
    Int(truncatingIfNeeded: (UInt64(bits) &* 0x9E37_79B9_7F4A_7C15) >> 33)
  }
}
