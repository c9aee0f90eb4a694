import Dispatch

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
    sources = numbers.compactMap { number in
      let previous = signal(number, SIG_IGN)
      guard unsafeBitCast(previous, to: Int.self) != unsafeBitCast(SIG_IGN, to: Int.self) else { return nil }
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { handle(number) }
      source.activate()
      return (number, source)
    }
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
