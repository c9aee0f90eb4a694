import Dispatch

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Says what is done when somebody ends the tool with Ctrl-C.
///
/// The tool then ends at once: a store takes no harm from that at any moment.
final class Interruption {
  /// The exit code of a program that SIGINT ends, as shells show it.
  private static let status: Int32 = 128 + SIGINT

  /// `nil` where whoever started the tool wants the signal to be ignored.
  private let source: (any DispatchSourceSignal)?

  /// Begins to listen, until this is released.
  ///
  /// - Parameter report: What to say.
  init(_ report: @escaping @Sendable () -> String) {
    let previous = signal(SIGINT, SIG_IGN)
    guard unsafeBitCast(previous, to: Int.self) != unsafeBitCast(SIG_IGN, to: Int.self) else {
      source = nil
      return
    }
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler {
      // Over the bar, if there is one.
      if Descriptor.standardError.isTerminal { Diagnostics.write("\r\u{1B}[K") }
      Diagnostics.writeLine("larder: interrupted. \(report())")
      _exit(Interruption.status)
    }
    source.activate()
    self.source = source
  }

  deinit {
    guard let source else { return }
    source.cancel()
    signal(SIGINT, SIG_DFL)
  }
}
