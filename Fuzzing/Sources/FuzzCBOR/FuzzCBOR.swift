import CLibFuzzer

/// Gives the decoder one input of libFuzzer's after another.
@main
enum FuzzCBOR {
  static func main() {
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    _ = LLVMFuzzerRunDriver(&count, &arguments) { start, count in
      let bytes = UnsafeRawBufferPointer(start: start, count: Int(count))
      DecoderProbe.ask(bytes)
      do {
        try DecoderProbe.run(bytes)
      } catch {
        // libFuzzer keeps the input of a crash, and there is no other way to tell it that something is wrong.
        preconditionFailure("\(error)")
      }
      return 0
    }
  }
}
