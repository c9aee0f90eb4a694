import LarderFiles

var connection: any SQLConnection { standIn() }
var extendedCode: Int32 { standIn() }
var message: String { standIn() }
var name: String { standIn() }
var codec: JSONCodec<User> { standIn() }
