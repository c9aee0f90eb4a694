#if Compression
internal import CZlib

/// The memory in which the library keeps the states of a ``Deflater``, kept for the next state of the same size.
///
/// For every piece of data a state is copied and given up. In the hands of the system's allocator its memory, up to 270 KB,
/// goes back to the kernel each time, and comes again page by page, which can take longer than to compress.
final class StreamMemory {
  private struct Block {
    let memory: UnsafeMutableRawPointer
    let size: Int
    var isFree: Bool
  }

  /// Few enough to go through: a state has five.
  private var blocks: [Block] = []

  deinit {
    for block in blocks { block.memory.deallocate() }
  }

  /// Has a stream allocate its memory here; to be called before the library sees it.
  ///
  /// The stream does not keep this object alive: whoever has both gives up the stream first.
  func serve(_ stream: ZlibStream) {
    stream.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
    stream.pointee.zalloc = { memory, count, size in
      guard let memory else { return nil }
      return Unmanaged<StreamMemory>.fromOpaque(memory).takeUnretainedValue().allocate(Int(count) * Int(size))
    }
    stream.pointee.zfree = { memory, block in
      guard let memory, let block else { return }
      Unmanaged<StreamMemory>.fromOpaque(memory).takeUnretainedValue().free(block)
    }
  }

  private func allocate(_ size: Int) -> UnsafeMutableRawPointer {
    if let index = blocks.firstIndex(where: { $0.isFree && $0.size == size }) {
      blocks[index].isFree = false
      return blocks[index].memory
    }
    let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    blocks.append(Block(memory: memory, size: size, isFree: false))
    return memory
  }

  private func free(_ memory: UnsafeMutableRawPointer) {
    guard let index = blocks.firstIndex(where: { $0.memory == memory }) else { return }
    blocks[index].isFree = true
  }
}
#endif
