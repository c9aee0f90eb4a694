import Foundation
import Larder
import LarderFiles
import Testing

@Suite struct FileErrorTests {
  @Test(arguments: [
    (ENOSPC, StoreError.Code.full, true), (EDQUOT, .full, true), (EFBIG, .full, false), (EACCES, .notPermitted, false),
    (EROFS, .notPermitted, false), (EPERM, .notPermitted, false), (ENOENT, .notFound, false),
    (EISDIR, .unrecognizedFormat, false), (ENAMETOOLONG, .invalidArgument, false), (EIO, .ioFailed, false),
    (ENOTDIR, .invalidArgument, false),
    (EMFILE, .ioFailed, true), (EINTR, .ioFailed, true),
  ]) func `is converted to a store error`(_ errorNumber: Int32, _ code: StoreError.Code, _ isRetryable: Bool) {
    let fileError = FileError(.write, path: "/some/file", errorNumber: errorNumber)
    let error = StoreError(fileError, during: .open, store: "s", message: "m", outcome: .unknown)
    #expect(error.code == code)
    #expect(error.isRetryable == isRetryable)
    #expect(error.outcome == .unknown && error.operation == .open && error.store == "s")
    #expect(error.underlying as? FileError == fileError)
  }

  @Test(arguments: [ENOENT, EISDIR, ENOTDIR, ENAMETOOLONG]) func `errors of an open store are not about its path`(
    _ errorNumber: Int32
  ) {
    let fileError = FileError(.open, path: "/some/file", errorNumber: errorNumber)
    #expect(StoreError(fileError, during: .apply, store: "s", message: "m").code == .ioFailed)
  }

  @Test func `names the operation the path and the reason`() {
    let error = FileError(.rename, path: "/some/file", errorNumber: ENOSPC)
    #expect(error.description.hasPrefix("rename /some/file: "))
    #expect(error.description.contains("space") && error.description.hasSuffix("(errno \(ENOSPC))"))
  }
}
