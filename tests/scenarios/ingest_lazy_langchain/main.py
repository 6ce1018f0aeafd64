"""The same index, one document after the other: lazy_load(), split, embed, save."""
import json
import os
import tempfile

from langchain_community.document_loaders import DirectoryLoader, TextLoader
from langchain_text_splitters import RecursiveCharacterTextSplitter

from stand_ins import HashEmbeddings, text

SCALE = int(os.environ.get("SCALE", "1"))


def write_files(folder):
    for number in range(16):
        with open(os.path.join(folder, f"{number}.txt"), "w") as f:
            f.write("\n\n".join(text(1000, i) for i in range(400)))


def save(index, pieces, vectors):
    for piece, vector in zip(pieces, vectors):
        index.write(json.dumps({"source": piece.metadata["source"], "vector": vector[:8]}) + "\n")


def embed_some(embedder, pieces):
    return embedder.embed_documents([piece.page_content for piece in pieces])


def build(loader, splitter, embedder, index):
    for document in loader.lazy_load():
        pieces = splitter.split_documents([document])
        save(index, pieces, embed_some(embedder, pieces))


def main():
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w") as index:
        write_files(folder)
        build(DirectoryLoader(folder, glob="*.txt", loader_cls=TextLoader),
              RecursiveCharacterTextSplitter(chunk_size=1200, chunk_overlap=0),
              HashEmbeddings(1536 * SCALE), index)


main()
