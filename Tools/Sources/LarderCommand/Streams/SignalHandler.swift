import Dispatch
import StoreAccess

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Handles signals that would end the process, for the lifetime of this object.
///
/// A signal that was ignored when the process started stays ignored, as a shell intends for the background processes of
/// a script.
final class SignalHandler {
  private let sources: [(number: Int32, source: any DispatchSourceSignal)]

  /// Begins to handle signals.
  ///
  /// - Parameters:
  ///   - numbers: The signals.
  ///   - handle: A closure that is called with the number of each signal that arrives.
  init(_ numbers: [Int32], _ handle: @escaping @Sendable (Int32) -> Void) {
    sources = numbers.filter { !SignalHandler.isIgnored($0) }.map { number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { handle(number) }
      // A signal that arrives before the source is registered ends the process, as it would without a handler. If it
      // were ignored here, it would be lost.
      let registered = DispatchSemaphore(value: 0)
      source.setRegistrationHandler { registered.signal() }
      source.activate()
      registered.wait()
      #if canImport(Darwin)
      // Only here the source leaves the default action in place.
      signal(number, SIG_IGN)
      #endif
      return (number, source)
    }
  }

  /// Returns whether a signal is ignored.
  private static func isIgnored(_ number: Int32) -> Bool {
    // There is no other portable way to ask than to set it.
    let previous = signal(number, SIG_DFL)
    let isIgnored = unsafeBitCast(previous, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    if isIgnored { signal(number, SIG_IGN) }
    return isIgnored
  }

  deinit {
    for (number, source) in sources {
      source.cancel()
      signal(number, SIG_DFL)
    }
  }

  /// Returns the exit code that shells show for a process that a signal ended.
  static func exitCode(of number: Int32) -> Int32 { 128 + number }
}
