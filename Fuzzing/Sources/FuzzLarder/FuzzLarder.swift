import CLibFuzzer
import Dispatch
import Larder

/// Gives a decoder or a recovery one input of libFuzzer's after another.
///
/// The first argument is `cbor` or the name of a ``FuzzTarget``. The others are libFuzzer's.
@main
enum FuzzLarder {
  private static let name = CommandLine.arguments.dropFirst().first ?? ""
  private static let target = FuzzTarget(rawValue: name)

  static func main() {
    guard name == "cbor" || target != nil else {
      print((["cbor"] + FuzzTarget.allCases.map(\.rawValue)).joined(separator: "\n"))
      return
    }
    // libFuzzer must not see the name of the target.
    var count = CommandLine.argc - 1
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
    arguments?[0] = CommandLine.unsafeArgv[0]
    _ = LLVMFuzzerRunDriver(&count, &arguments) { start, count in
      FuzzLarder.run(UnsafeRawBufferPointer(start: start, count: Int(count)))
      return 0
    }
  }

  private static func run(_ bytes: UnsafeRawBufferPointer) {
    do {
      guard let target else {
        DecoderProbe.ask(bytes)
        _ = try DecoderProbe.run(bytes)
        return
      }
      let (input, result) = (Array(bytes), Outcome())
      Task.detached {
        do { try await target.run(input) } catch { result.note(error) }
        result.done.signal()
      }
      result.done.wait()
      if let error = result.error { throw error }
    } catch {
      // libFuzzer keeps the input of a crash, and there is no other way to tell it that something is wrong.
      preconditionFailure("\(error)")
    }
  }
}

/// The end of a task that libFuzzer's thread waits for.
private final class Outcome: Sendable {
  let done = DispatchSemaphore(value: 0)
  private let failure = Locked<(any Error)?>(nil)

  var error: (any Error)? { failure.withLock { $0 } }

  func note(_ error: any Error) { failure.withLock { $0 = error } }
}
