import Dispatch
import Foundation

/// The example CachingProxy, in a process of its own.
struct ProxyProcess {
  /// A proxy that ended before it listened.
  struct Failure: Error, CustomStringConvertible {
    let output: String

    var description: String { "the proxy did not start: \(output)" }
  }

  /// The URL of the proxy, without a path.
  let url: String

  private let process: Process
  private let interruption: any DispatchSourceSignal

  /// Starts the proxy on a free port, and returns when it listens.
  ///
  /// - Parameters:
  ///   - origin: The URL of the server behind it.
  ///   - store: The URL of its store.
  /// - Throws: ``Failure``, or the error of starting a process.
  init(origin: String, store: String) throws {
    let process = Process()
    process.executableURL = Bundle.main.executableURL?.deletingLastPathComponent().appending(path: "CachingProxy")
    process.arguments = ["--origin", origin, "--listen", "127.0.0.1:0", "--store", store]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    var output = ""
    while true {
      let bytes = pipe.fileHandleForReading.availableData
      output += String(decoding: bytes, as: UTF8.self)
      if let address = output.firstMatch(of: /listening on ([0-9.]+:[0-9]+),/)?.output.1 {
        url = "http://\(address)"
        break
      }
      guard !bytes.isEmpty else { throw Failure(output: output) }
    }
    // The proxy also prints its status from time to time, and must not wait for a reader.
    pipe.fileHandleForReading.readabilityHandler = { handle in
      if handle.availableData.isEmpty { handle.readabilityHandler = nil }
    }
    self.process = process
    // The proxy is not in the process group that the terminal interrupts.
    signal(SIGINT, SIG_IGN)
    let identifier = process.processIdentifier
    interruption = DispatchSource.makeSignalSource(signal: SIGINT)
    interruption.setEventHandler {
      kill(identifier, SIGKILL)
      exit(128 + SIGINT)
    }
    interruption.resume()
  }

  /// Ends the proxy and returns when it has ended.
  func stop() {
    // An orderly end would wait for the client's open connections. The store needs none.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
