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
/// The process then ends by the signal as it would have at once: a store takes no harm from that at any moment.
final class Interruption {
  private let source: any DispatchSourceSignal

  /// Begins to listen, until this is released.
  ///
  /// - Parameter report: What to say.
  init(_ report: @escaping @Sendable () -> String) {
    signal(SIGINT, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler {
      // Over the bar, if there is one.
      if Descriptor.standardError.isTerminal { Diagnostics.write("\r\u{1B}[K") }
      Diagnostics.writeLine("larder: interrupted. \(report())")
      signal(SIGINT, SIG_DFL)
      kill(getpid(), SIGINT)
    }
    source.activate()
  }

  deinit {
    source.cancel()
    signal(SIGINT, SIG_DFL)
  }
}
