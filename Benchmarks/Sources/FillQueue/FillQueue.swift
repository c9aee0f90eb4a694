import Foundation
import Larder
import LarderQueue
import PeakMemory

/// Fills a queue with items of 200 bytes, or opens a full one, and prints the peak resident memory of the process, in
/// bytes.
///
/// Each measurement is a process of its own, because a process does not return memory that it once had.
@main
enum FillQueue {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let count = Int(arguments[2]), count >= 0 else {
      FileHandle.standardError.write(Data("usage: FillQueue FOLDER COUNT, with 0 to open what is there\n".utf8))
      exit(64)
    }
    let queue = try await QueueStore(path: arguments[1], codec: .raw, durability: .buffered)
    let value = (0..<200).map { UInt8(truncatingIfNeeded: $0) }
    for _ in 0..<count / 1000 { try await queue.enqueue((0..<1000).map { _ in QueueInput(value) }) }
    guard try await queue.counts().waiting >= count else { throw CocoaError(.featureUnsupported) }
    try await queue.close()
    print(try PeakMemory.bytes())
  }
}
