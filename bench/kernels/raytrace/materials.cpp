// What surfaces do with light.
#include "scene.h"

Material::~Material() = default;

namespace {

Vec mirrored(const Vec &to, const Vec &normal)
{
    return to - normal * (2 * normal.dot(to));
}

class Matt : public Material {
public:
    explicit Matt(Vec c) : own(c) {}
    Vec colour(const Scene &scene, const Ray &, const Hit &hit, int) const override
    {
        return own * scene.light_at(hit);
    }

private:
    Vec own;
};

class Chequered : public Material {
public:
    Chequered(Vec a, Vec b) : one(a), other(b) {}
    Vec colour(const Scene &scene, const Ray &, const Hit &hit, int) const override
    {
        bool odd = (int64_t(hit.place.x + 1000) ^ int64_t(hit.place.z + 1000)) & 1;
        return (odd ? one : other) * scene.light_at(hit);
    }

private:
    Vec one, other;
};

class Mirror : public Material {
public:
    explicit Mirror(Vec t) : tint(t) {}
    Vec colour(const Scene &scene, const Ray &ray, const Hit &hit, int depth) const override
    {
        return tint * scene.trace({hit.place, mirrored(ray.to, hit.normal)}, depth + 1) + scene.light_at(hit) * 0.1;
    }

private:
    Vec tint;
};

class Glass : public Material {
public:
    explicit Glass(double i) : index(i) {}
    Vec colour(const Scene &scene, const Ray &ray, const Hit &hit, int depth) const override
    {
        double cosine = -hit.normal.dot(ray.to), ratio = cosine > 0 ? 1 / index : index;
        Vec normal = cosine > 0 ? hit.normal : hit.normal * -1;
        cosine = cosine > 0 ? cosine : -cosine;
        double k = 1 - ratio * ratio * (1 - cosine * cosine);
        if (k < 0)
            return scene.trace({hit.place, mirrored(ray.to, normal)}, depth + 1);
        Vec through = ray.to * ratio + normal * (ratio * cosine - __builtin_sqrt(k));
        double back = 0.04 + 0.96 * (1 - cosine) * (1 - cosine) * (1 - cosine);
        Vec seen = scene.trace({hit.place, through.unit()}, depth + 1) * (1 - back);
        return seen + scene.trace({hit.place, mirrored(ray.to, normal)}, depth + 2) * back;
    }

private:
    double index;
};

} // namespace

std::unique_ptr<Material> make_matt(Vec colour)
{
    return std::make_unique<Matt>(colour);
}

std::unique_ptr<Material> make_chequered(Vec one, Vec other)
{
    return std::make_unique<Chequered>(one, other);
}

std::unique_ptr<Material> make_mirror(Vec tint)
{
    return std::make_unique<Mirror>(tint);
}

std::unique_ptr<Material> make_glass(double index)
{
    return std::make_unique<Glass>(index);
}
